#include "fuse/fit.h"

#include <algorithm>
#include <unordered_map>

#include "inst/beside.h"
#include "inst/lifetimes.h"

namespace aglow {

int64_t keptBytes(const Program& program, const BodyForm& form, BodySteps steps) {
  const std::vector<int> stages = stagesOf(program, steps);
  std::unordered_map<RegionId, int> computed;  // in which stage, until it counts
  int64_t bytes = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const Operand& operand : steps[i]->inputs()) {
      const auto it = computed.find(operand.region);
      if (it == computed.end() || it->second == stages[i]) continue;
      int64_t row = elemBytes(program[operand.region].type.kind());
      for (int axis = form.shape.rank() - form.rowAxes; axis < form.shape.rank(); ++axis) row *= form.shape[axis];
      bytes += row;
      computed.erase(it);
    }
    const RegionId result = steps[i]->results()[0].region;
    if (program[result].type.shape() == form.shape && !steps[i]->inputs().empty()) computed.emplace(result, stages[i]);
  }
  return bytes;
}

namespace {

// The questions that growing bodies ask, for a body that is there.
bool fits(const Program& program, const Instr& fused, const FusePolicy& policy) {
  const std::vector<const Instr*> steps = bodySteps(fused);
  const Result<BodyForm> form = formOf(program, steps);
  if (!form.ok() || (form->reduces() && keptBytes(program, *form, steps) > policy.rowBytes()) ||
      fused.operands.size() > policy.mostOperands())
    return false;
  if (!form->anchored)
    return std::all_of(steps.begin(), steps.end(),
                       [&](const Instr* step) { return bool(policy.takes(program, *step)); });
  Instr anchor = *steps.front();
  anchor.plan = fused.plan;
  return policy.takesEpilogue(program, anchor) && std::all_of(steps.begin() + 1, steps.end(), [&](const Instr* step) {
           return bool(policy.joins(program, anchor, *step));
         });
}

}  // namespace

bool takeApart(Program& program, const FusePolicy& policy) {
  std::vector<Instr> old = std::move(program.instrs);
  program.instrs.clear();
  bool changed = false;
  for (Instr& instr : old) {
    if (instr.kind != Instr::Kind::Fused || fits(program, instr, policy)) {
      program.instrs.push_back(std::move(instr));
      continue;
    }
    changed = true;
    for (Instr& step : instr.body) {
      step.predicate = instr.predicate;
      for (const Operand& operand : step.operands)
        if (operand.region != kNoRegion && program[operand.region].as<Local>() != nullptr)
          program[operand.region].source = Allocated{};
      program.instrs.push_back(std::move(step));
    }
  }
  if (changed) {
    forgetBeside(program);
    markLifetimes(program);
  }
  return changed;
}

}  // namespace aglow
