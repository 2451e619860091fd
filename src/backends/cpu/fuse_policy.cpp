#include "backends/cpu/fuse_policy.h"

#include <algorithm>
#include <optional>

#include "backends/cpu/code/problem.h"
#include "backends/cpu/kernels/table.h"
#include "codegen/nest/build.h"

namespace aglow {

namespace {

bool hasEpilogue(const cpu::KernelPlan& plan) {
  const auto isEpilogue = [](const cpu::FunctionParam& p) { return p.kind == cpu::FunctionParam::Kind::Epilogue; };
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const cpu::KernelStep& step) {
    return std::any_of(step.functions.begin(), step.functions.end(), isEpilogue);
  });
}

}  // namespace

Decision CpuFusePolicy::takes(const Program& program, const Instr& instr) const {
  for (const Operand& operand : instr.operands)
    if (operand.region != kNoRegion && program[operand.region].type.quant().axis >= 0)
      return Decision::no("scales along an axis are read in a loop of their own");
  return Decision::yes();
}

Decision CpuFusePolicy::takesEpilogue(const Program& program, const Instr& anchor) const {
  const codegen::InstrProblem problem(program, anchor);
  const cpu::KernelRow* row = cpu::findKernel(problem.problem(), machine_);
  if (row == nullptr || !hasEpilogue(row->plan(problem.problem(), machine_)))
    return Decision::no("its kernel stores results itself");
  return Decision::yes();
}

Decision CpuFusePolicy::joins(const Program& program, const Instr& anchor, const Instr& candidate) const {
  if (const Decision taken = takes(program, candidate); !taken) return taken;
  const codegen::InstrProblem problem(program, anchor);
  const cpu::KernelPlan plan = cpu::planKernel(problem.problem(), machine_);
  const Shape& shape = program[anchor.results()[0].region].type.shape();
  for (const Operand& operand : candidate.operands)
    if (!nest::stridesInView(program[operand.region].type.shape(), shape, plan.epilogueDims))
      return Decision::no("an operand does not go along with the kernel's order of results");
  return Decision::yes();
}

}  // namespace aglow
