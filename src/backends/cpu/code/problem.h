// Instructions as the kernel table sees them.
#pragma once

#include "backends/cpu/kernels/plan.h"
#include "inst/operand_types.h"

namespace aglow::codegen {

class InstrProblem {
public:
  InstrProblem(const Program& program, const Instr& instr) : attrs_(instr.attrs), types_(program, instr) {}

  // Lives as long as this.
  cpu::Problem problem() const { return {attrs_, types_.in, types_.out}; }

private:
  const Attrs& attrs_;
  OperandTypes types_;
};

}  // namespace aglow::codegen
