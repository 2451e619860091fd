#include "backends/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "inst/fused.h"
#include "inst/lifetimes.h"
#include "support/quote.h"

namespace aglow {

void Refusals::add(std::string_view what, std::string_view name, std::string_view op, std::string_view reason) {
  text_ += fmt::format("\n  {} '{}' ({}): {}", what, name, op, reason);
}

Status Refusals::status() const {
  if (text_.empty()) return {};
  return Error{.code = Code::UnsupportedFeature,
               .message = fmt::format("backend '{}' cannot compile:{}", backend_.name(), text_)};
}

Status planInstructions(Program& program, const Backend& backend) {
  Refusals refusals(backend);
  for (Instr& instr : program.instrs) {
    if (!instr.computes() || instr.plan) continue;
    Result<std::optional<Plan>> plan = backend.plan(program, instr);
    if (plan.ok())
      instr.plan = *std::move(plan);
    else if (plan.error().code != Code::UnsupportedFeature)
      return std::move(plan).error().at(
          fmt::format("node {} ({})", quoted(instr.origin), instrName(bodyOf(instr).front())));
    else
      refusals.add("instruction", instr.origin, instrName(bodyOf(instr).front()), plan.error().message);
  }
  return refusals.status();
}

void forgetPlans(Program& program) {
  const auto isScratch = [](const Operand& operand) { return operand.access == Access::Scratch; };
  bool changed = false;
  for (Instr& instr : program.instrs) {
    instr.plan.reset();
    instr.chained = false;  // goes by the plan
    changed |= std::erase_if(instr.operands, isScratch) > 0;
    for (Instr& step : instr.body) std::erase_if(step.operands, isScratch);
  }
  if (changed) markLifetimes(program);
}

}  // namespace aglow
