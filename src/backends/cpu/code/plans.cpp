#include "backends/cpu/code/plans.h"

#include <algorithm>

#include "backends/cpu/code/problem.h"
#include "backends/cpu/kernels/table.h"
#include "codegen/nest/build.h"
#include "inst/fused.h"
#include "support/check.h"

namespace aglow::cpu {

namespace {

bool hasEpilogue(const KernelStep& step) {
  const auto isEpilogue = [](const FunctionParam& param) { return param.kind == FunctionParam::Kind::Epilogue; };
  return std::any_of(step.functions.begin(), step.functions.end(), isEpilogue);
}

// What the kernels of a row need and offer.
Plan planOf(const KernelRow& row, const KernelPlan& kernels) {
  Plan plan{.kernel = std::string(row.name), .units = 0, .scratchBytes = kernels.scratchBytes};
  for (const KernelStep& step : kernels.steps) plan.units = std::max(plan.units, step.units);
  if (std::any_of(kernels.steps.begin(), kernels.steps.end(), hasEpilogue)) {
    plan.epilogue.emplace();
    std::copy(std::begin(kernels.epilogueDims), std::end(kernels.epilogueDims), plan.epilogue->begin());
  }
  return plan;
}

}  // namespace

Result<Plan> planInstr(const Program& program, const Instr& instr, const Machine& machine) {
  if (nest::isNest(program, instr)) return Plan{.kernel = Plan::kLoops, .units = nest::nestOf(program, instr).units()};
  const codegen::InstrProblem problem(program, bodyOf(instr).front());
  KernelChoice choice = chooseKernel(problem.problem(), machine);
  if (choice.row == nullptr) return Error{.code = Code::UnsupportedFeature, .message = choice.reason()};
  Plan plan = planOf(*choice.row, choice.row->plan(problem.problem(), machine));
  plan.refused = std::move(choice.refused);
  return plan;
}

KernelPlan kernelsOf(const Program& program, const Instr& instr, const Machine& machine) {
  const Instr& anchor = bodyOf(instr).front();
  const codegen::InstrProblem problem(program, anchor);
  const KernelRow* row = instr.plan ? findKernel(opOf(anchor.attrs.op()), instr.plan->kernel) : nullptr;
  AGLOW_CHECK(row != nullptr && row->applies(problem.problem(), machine), "no kernel is planned for " + instr.origin);
  KernelPlan kernels = row->plan(problem.problem(), machine);
  Plan expected = planOf(*row, kernels);
  expected.refused = instr.plan->refused;
  AGLOW_CHECK(*instr.plan == expected, "the plan of " + instr.origin + " is not one for this machine");
  return kernels;
}

}  // namespace aglow::cpu
