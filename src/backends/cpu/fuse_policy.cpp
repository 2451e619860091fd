#include "backends/cpu/fuse_policy.h"

#include "codegen/nest/build.h"

namespace aglow {

Decision CpuFusePolicy::takes(const Program& program, const Instr& instr) const {
  for (const Operand& operand : instr.operands)
    if (operand.region != kNoRegion && program[operand.region].type.quant().axis >= 0)
      return Decision::no("scales along an axis are read in a loop of their own");
  return Decision::yes();
}

Decision CpuFusePolicy::takesEpilogue(const Program& /*program*/, const Instr& anchor) const {
  return anchor.plan && anchor.plan->epilogue ? Decision::yes() : Decision::no("its kernel stores results itself");
}

Decision CpuFusePolicy::joins(const Program& program, const Instr& anchor, const Instr& candidate) const {
  if (const Decision taken = takes(program, candidate); !taken) return taken;
  const Shape& shape = program[anchor.results()[0].region].type.shape();
  for (const Operand& operand : candidate.operands)
    if (!nest::stridesInView(program[operand.region].type.shape(), shape, *anchor.plan->epilogue))
      return Decision::no("an operand does not go along with the kernel's order of results");
  return Decision::yes();
}

}  // namespace aglow
