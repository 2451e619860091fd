// Instructions as the kernel table sees them.
#pragma once

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

}  // namespace aglow::codegen
