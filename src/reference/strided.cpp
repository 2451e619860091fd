// Joining of axes, and copies between strided memories.
#include "reference/strided.h"

#include <cstring>

#include "support/check.h"

namespace aglow {

std::vector<StridedAxis> joinedAxes(const std::vector<int64_t>& dims, const std::vector<int64_t>& from,
                                    const std::vector<int64_t>& to) {
  std::vector<StridedAxis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    const StridedAxis next{dims[i], from[i], to[i]};
    if (!axes.empty() && axes.back().from == next.from * next.extent && axes.back().to == next.to * next.extent)
      axes.back() = {axes.back().extent * next.extent, next.from, next.to};
    else
      axes.push_back(next);
  }
  if (axes.empty()) axes.push_back({});
  return axes;
}

namespace {

template <size_t kBytes>
void copyRun(const std::byte* from, std::byte* to, const StridedAxis& run) {
  for (int64_t i = 0; i < run.extent; ++i)
    std::memcpy(to + i * run.to * static_cast<int64_t>(kBytes), from + i * run.from * static_cast<int64_t>(kBytes),
                kBytes);
}

}  // namespace

void copyStrided(const std::vector<int64_t>& dims, int elemBytes, const std::byte* from,
                 const std::vector<int64_t>& fromStrides, std::byte* to, const std::vector<int64_t>& toStrides) {
  const std::vector<StridedAxis> axes = joinedAxes(dims, fromStrides, toStrides);
  const StridedAxis run = axes.back();
  forEachRun(axes, [&](int64_t fromOffset, int64_t toOffset) {
    const std::byte* source = from + fromOffset * elemBytes;
    std::byte* target = to + toOffset * elemBytes;
    if (run.from == 1 && run.to == 1) {
      std::memcpy(target, source, static_cast<size_t>(run.extent * elemBytes));
      return;
    }
    switch (elemBytes) {
      case 1:
        return copyRun<1>(source, target, run);
      case 2:
        return copyRun<2>(source, target, run);
      case 4:
        return copyRun<4>(source, target, run);
      case 8:
        return copyRun<8>(source, target, run);
      default:
        AGLOW_CHECK(false, "elements have 1, 2, 4 or 8 bytes");
    }
  });
}

}  // namespace aglow
