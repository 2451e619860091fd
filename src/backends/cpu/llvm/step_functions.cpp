#include "backends/cpu/llvm/step_functions.h"

#include <fmt/format.h>

#include "backends/cpu/bundle/c_names.h"
#include "backends/cpu/code/plans.h"
#include "codegen/nest/build.h"
#include "inst/cost.h"
#include "inst/fused.h"
#include "inst/rows.h"

namespace aglow::codegen {

namespace {

std::string attributesText(const Attrs& attrs) {
  std::string text(attrs.op().name);
  for (const AttrValue& value : attrs.values()) {
    text += ';';
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, ElemKind>)
            text += elemName(v);
          else if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>>)
            for (const auto item : v) text += fmt::format("{},", item);
          else
            text += fmt::format("{}", v);
        },
        value);
  }
  return text;
}

// What an instruction does, numbers that its code holds included, and its regions in the order of their numbers there.
// Instructions with the same key differ in addresses only.
class InstrKey {
public:
  InstrKey(const Program& program, const Instr& instr) : program_(program) {
    if (instr.plan) text = instr.plan->kernel + "\n";
    // Units go another way in parts.
    if (instr.plan && instr.plan->cut) text += fmt::format("{} {}\n", instr.plan->cut->axis, instr.plan->cut->parts);
    if (const int64_t rows = predicateRows(program, instr); rows > 0) text += fmt::format("{} rows\n", rows);
    for (const Operand& operand : instr.operands) add(operand, "");
    for (const Instr& member : bodyOf(instr)) {
      text += "\n" + attributesText(member.attrs);
      for (const Operand& operand : member.operands) add(operand, " ");
    }
  }

  std::string text;
  std::vector<RegionId> order;

private:
  void add(const Operand& operand, std::string_view before) {
    text += fmt::format("{}{}", before, static_cast<int>(operand.access));
    if (operand.region == kNoRegion) {
      text += "- ";
      return;
    }
    const auto [it, fresh] = numbers_.try_emplace(operand.region, order.size());
    if (fresh) order.push_back(operand.region);
    text += fmt::format("{}:{} ", it->second, program_[operand.region].type.text());
    if (const std::optional<double> number = nest::literalOf(program_, operand.region))
      text += fmt::format("={} ", *number);
  }

  const Program& program_;
  std::unordered_map<RegionId, size_t> numbers_;
};

std::string functionName(std::span<const Instr> body) {
  std::string name;
  for (const Instr& instr : body.first(std::min<size_t>(body.size(), 6))) {
    if (!name.empty()) name += '_';
    for (const char c : instr.attrs.op().name) name += static_cast<char>(std::tolower(c));
  }
  return name;
}

}  // namespace

Steps StepFunctions::of(const Instr& instr) {
  if (instr.isMarker() || instr.kind == Instr::Kind::CopyWait) return {};
  if (instr.kind == Instr::Kind::Copy || instr.kind == Instr::Kind::CopyStart) return {moveOf(instr)};
  if (options_.apart) return emit(instr, fmt::format("{}.{}", functionName(bodyOf(instr)), cIdentifier(instr.origin)));
  InstrKey key(context_.program, instr);
  const auto it = shared_.find(key.text);
  if (it == shared_.end()) {
    Steps steps = emit(instr, options_.name + "." + functionName(bodyOf(instr)));
    shared_[std::move(key.text)] = {steps, std::move(key.order)};
    return steps;
  }
  std::unordered_map<RegionId, RegionId> counterpart;
  for (size_t i = 0; i < key.order.size(); ++i) counterpart[it->second.order[i]] = key.order[i];
  Steps steps = it->second.steps;
  for (Step& step : steps)
    for (StepAddress& address : step.addresses)
      if (address.region >= 0) address.region = counterpart.at(address.region);
  return steps;
}

Step StepFunctions::moveOf(const Instr& copy) {
  const RegionId to = copy.operands[0].region;
  return {.function = context_.library.find("move_bytes"),
          .units = context_.program[to].type.bytes(),
          .addresses = {{to}, {copy.operands[1].region}}};
}

Steps StepFunctions::emit(const Instr& instr, const std::string& name) {
  AGLOW_CHECK(instr.plan.has_value(), "no plan for " + instr.origin);
  Steps steps;
  if (instr.plan->isLoops()) {
    steps = emitLoops(context_, instr, name);
  } else {
    const cpu::KernelPlan kernels = cpu::kernelsOf(context_.program, instr, context_.target.shape());
    steps = emitKernel(context_, kernels, instr, name, !options_.apart);
  }
  std::erase_if(steps, [](const Step& step) { return step.units == 0; });
  return steps;
}

double StepFunctions::microseconds(const Instr& instr, const Step& step) const {
  return microsecondsOf(costOf(context_.program, instr)) / static_cast<double>(step.rounds);
}

int StepFunctions::threadsWorth(const Instr& instr, const Step& step) const {
  return step.units < 2 ? 1 : aglow::threadsWorth(microseconds(instr, step));
}

}  // namespace aglow::codegen
