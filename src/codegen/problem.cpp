#include "codegen/problem.h"

#include <algorithm>

namespace aglow::codegen {

bool isDataParallel(const Instr& instr) {
  if (instr.kind != Instr::Kind::Compute) return false;
  if (instr.attrs.op().kind == OpKind::Elementwise) return true;
  switch (opOf(instr.attrs.op())) {
    case Op::Cast:
    case Op::Quantize:
    case Op::Dequantize:
    case Op::Splat:
      return true;
    default:
      return false;
  }
}

// A reduction by itself has kernels; with others it is part of their loop.
bool isLoop(std::span<const Instr> body) {
  if (body.size() == 1) return isDataParallel(body.front());
  return std::all_of(body.begin(), body.end(), [](const Instr& instr) {
    return isDataParallel(instr) || (instr.kind == Instr::Kind::Compute && opOf(instr.attrs.op()) == Op::Reduce);
  });
}

}  // namespace aglow::codegen
