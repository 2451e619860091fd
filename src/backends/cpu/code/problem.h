// Instructions as the kernel table sees them.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "backends/cpu/kernels/plan.h"
#include "inst/program.h"

namespace aglow::codegen {

class InstrProblem {
public:
  InstrProblem(const Program& program, const Instr& instr) : attrs_(instr.attrs) {
    const auto typeOf = [&](const Operand& o) { return o.region == kNoRegion ? nullptr : &program[o.region].type; };
    for (const Operand& operand : instr.inputs()) in_.push_back(typeOf(operand));
    for (const Operand& operand : instr.results()) out_.push_back(typeOf(operand));
  }

  // Lives as long as this.
  cpu::Problem problem() const { return {attrs_, in_, out_}; }

private:
  const Attrs& attrs_;
  std::vector<const Type*> in_, out_;
};

// The instruction itself, or the body of a fused one.
inline std::span<const Instr> bodyOf(const Instr& instr) {
  return instr.kind == Instr::Kind::Fused ? std::span<const Instr>(instr.body) : std::span<const Instr>(&instr, 1);
}

// Whether loops are written for these instructions: the rest is done by kernels of the library.
bool isLoop(std::span<const Instr> body);

// Steps to read a tensor with these strides, broadcast to a shape, when the shape is seen as four axes; none where it
// cannot be.
std::optional<std::array<int64_t, 4>> stridesInView(const Shape& from, const Shape& shape, const int64_t (&view)[4]);

}  // namespace aglow::codegen
