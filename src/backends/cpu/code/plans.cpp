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

// The elements of an operand that the points [begin, end) of the first axes meet, of all axes' points in order, are
// [begin * size, end * size): the operand's own part of a cut of these points.
bool goesWith(const nest::Nest& nest, const nest::Access& access, size_t axes) {
  const auto& operand = nest.operands[static_cast<size_t>(access.operand)];
  int64_t points = 1, reach = 0;
  for (size_t i = 0; i < nest.axes.size(); ++i) {
    if (i < axes)
      points *= nest.axes[i].extent;
    else if (access.strides[i] < 0)
      return false;
    else
      reach += (nest.axes[i].extent - 1) * access.strides[i];
  }
  const int64_t size = operand.elements / points;
  if (operand.elements % points != 0 || access.offset < 0 || access.offset + reach >= size) return false;
  int64_t stride = size;
  for (size_t i = axes; i-- > 0;) {
    if (nest.axes[i].extent != 1 && access.strides[i] != stride) return false;
    stride *= nest.axes[i].extent;
  }
  return true;
}

// For each operand of the nest, `outer` where it is met, and all its accesses go with the points of the first axes.
std::vector<int64_t> outerOf(const nest::Nest& nest, size_t axes, int64_t outer) {
  std::vector<int64_t> all(nest.operands.size(), 0);
  for (const nest::Access& access : nest.accesses)
    if (access.operand >= 0) all[static_cast<size_t>(access.operand)] = outer;
  for (const nest::Access& access : nest.accesses)
    if (access.operand >= 0 && !goesWith(nest, access, axes)) all[static_cast<size_t>(access.operand)] = 0;
  return all;
}

std::optional<Plan> cutLoops(const Program& program, const Instr& instr, int64_t images, int64_t parts) {
  const nest::Nest nest = nest::nestOf(program, instr);
  if (nest.rowCount() % (images * parts) != 0) return std::nullopt;
  const size_t rowAxes = nest.axes.size() - static_cast<size_t>(nest.innerAxes());
  Plan plan = *instr.plan;
  plan.cut = {.axis = 0, .images = images, .parts = parts, .outer = outerOf(nest, rowAxes, 1)};
  return plan;
}

const KernelRow* rowOf(const Instr& instr) {
  return findKernel(opOf(bodyOf(instr).front().attrs.op()), instr.plan->kernel);
}

// By the row that the plan names, with the parts that it has.
KernelPlan plannedKernels(const Program& program, const Instr& instr, const Machine& machine) {
  const codegen::InstrProblem instrProblem(program, bodyOf(instr).front());
  Problem problem = instrProblem.problem();
  const KernelRow* row = instr.plan ? rowOf(instr) : nullptr;
  AGLOW_CHECK(row != nullptr && row->applies(problem, machine), "no kernel is planned for " + instr.origin);
  if (instr.plan->cut) problem.wish = {.axis = instr.plan->cut->axis, .parts = instr.plan->cut->parts};
  return row->plan(problem, machine);
}

// What is read of the anchor's inputs, and of all else at the points of its result.
std::vector<int64_t> outerOfKernel(const Program& program, const Instr& instr, const KernelPlan& kernels,
                                   int64_t axis) {
  const std::span<const int64_t> view(kernels.epilogueDims);
  int64_t outer = 1;
  for (int64_t i = 1; i < axis; ++i) outer *= view[static_cast<size_t>(i)];
  const nest::Nest epilogue = nest::epilogueOf(program, instr, view);
  std::vector<int64_t> all = outerOf(epilogue, epilogue.axes.size(), outer);
  all.resize(instr.operands.size(), 0);
  std::vector<bool> met(instr.operands.size());
  for (const nest::Access& access : epilogue.accesses)
    if (access.operand >= 0) met[static_cast<size_t>(access.operand)] = true;
  const std::span<const Operand> inputs = bodyOf(instr).front().inputs();
  for (size_t i = 0; i < instr.operands.size(); ++i)
    for (size_t input = 0; input < inputs.size(); ++input) {
      if (inputs[input].region == kNoRegion || inputs[input].region != instr.operands[i].region) continue;
      const int64_t mine = input < kernels.cut->inputs.size() ? kernels.cut->inputs[input] : 0;
      all[i] = !met[i] || all[i] == mine ? mine : 0;
      met[i] = true;
    }
  return all;
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

std::optional<Plan> cutPlan(const Program& program, const Instr& instr, int64_t axis, int64_t images, int64_t parts,
                            const Machine& machine) {
  if (instr.plan->units < 1) return std::nullopt;
  if (instr.plan->isLoops()) return axis == 0 ? cutLoops(program, instr, images, parts) : std::nullopt;
  if (axis == 0 || !instr.plan->epilogue || (*instr.plan->epilogue)[0] != images) return std::nullopt;
  Instr cut = instr;
  cut.plan->cut = {.axis = axis, .images = images, .parts = parts};
  const KernelPlan kernels = plannedKernels(program, cut, machine);
  if (!kernels.cut || kernels.scratchBytes != instr.plan->scratchBytes) return std::nullopt;
  for (const KernelStep& step : kernels.steps)
    if (step.rounds != 1 || step.units % cut.plan->cut->count() != 0) return std::nullopt;
  cut.plan->units = planOf(*rowOf(cut), kernels).units;
  cut.plan->cut->outer = outerOfKernel(program, instr, kernels, axis);
  return std::move(cut.plan);
}

KernelPlan kernelsOf(const Program& program, const Instr& instr, const Machine& machine) {
  KernelPlan kernels = plannedKernels(program, instr, machine);
  Plan expected = planOf(*rowOf(instr), kernels);
  expected.refused = instr.plan->refused;
  if (instr.plan->cut) {
    const Cut& cut = *instr.plan->cut;
    Instr uncut = instr;
    uncut.plan->cut.reset();
    const std::optional<Plan> again = cutPlan(program, uncut, cut.axis, cut.images, cut.parts, machine);
    AGLOW_CHECK(again.has_value(), "the kernels of " + instr.origin + " cannot be cut as its plan says");
    expected.cut = again->cut;
  }
  AGLOW_CHECK(*instr.plan == expected, "the plan of " + instr.origin + " is not one for this machine");
  return kernels;
}

}  // namespace aglow::cpu
