#include "backends/cpu/code/problem.h"

#include <algorithm>

#include "inst/fused.h"

namespace aglow::codegen {

// A reduction by itself has kernels; with others it is part of their loop.
bool isLoop(std::span<const Instr> body) {
  if (body.size() == 1) return body.front().attrs.op().isDataParallel();
  return std::all_of(body.begin(), body.end(), [](const Instr& instr) {
    return instr.attrs.op().isDataParallel() || opOf(instr.attrs.op()) == Op::Reduce;
  });
}

std::optional<std::array<int64_t, 4>> stridesInView(const Shape& from, const Shape& shape, const int64_t (&view)[4]) {
  const std::vector<int64_t> strides = broadcastStrides(from, shape);
  std::array<int64_t, 4> result{};
  int axis = 0;
  for (int v = 0; v < 4; ++v) {
    int64_t covered = 1;
    bool started = false;
    while (covered < view[v]) {
      if (axis == shape.rank()) return std::nullopt;
      const int64_t extent = shape[axis];
      const int64_t stride = strides[static_cast<size_t>(axis++)];
      if (extent == 1) continue;
      if (started && result[static_cast<size_t>(v)] != stride * extent) return std::nullopt;
      result[static_cast<size_t>(v)] = stride;
      started = true;
      covered *= extent;
    }
    if (covered != view[v]) return std::nullopt;
  }
  return result;
}

}  // namespace aglow::codegen
