#include "report/stages.h"

#include "graph/syntax.h"
#include "inst/fused.h"
#include "inst/instr_names.h"

namespace aglow {

namespace {

// How the viewer colours it.
const char* kindOf(const Node& node) {
  switch (node.def().kind) {
    case OpKind::Storage:
      if (node.op() == Op::Constant) return "constant";
      return node.op() == Op::Save ? "output" : static_cast<const Placeholder&>(node).isState() ? "state" : "input";
    case OpKind::Elementwise:
      return "elementwise";
    case OpKind::Core:
    case OpKind::Target:
      return "core";
    case OpKind::View:
      return "view";
    case OpKind::Composite:
    case OpKind::Derivative:
      break;
  }
  return "composite";
}

std::string typesOf(const Node& node) {
  std::string text;
  for (const Type& type : node.types()) text += (text.empty() ? "" : ", ") + type.text();
  return text;
}

std::string nameOf(const Value& value) {
  return value.index == 0 ? value.node->name() : fmt::format("{}:{}", value.node->name(), value.index);
}

nlohmann::json recordOf(const Node& node) {
  nlohmann::json operands = nlohmann::json::array(), results = nlohmann::json::array();
  for (int i = 0; i < node.inputCount(); ++i)
    if (const Value value = node.input(i)) operands.push_back(nameOf(value));
  if (const Value predicate = node.predicate()) operands.push_back(nameOf(predicate));
  for (int i = 0; i < node.resultCount(); ++i)
    results.push_back(i == 0 ? node.name() : fmt::format("{}:{}", node.name(), i));
  return {node.def().name, kindOf(node), node.name(), typesOf(node), printAttrs(node.attrs()), operands, results};
}

nlohmann::json recordOf(const Program& program, const Instr& instr) {
  nlohmann::json operands = nlohmann::json::array(), results = nlohmann::json::array();
  std::string types, attrs;
  for (const Operand& operand : instr.operands) {
    if (operand.region == kNoRegion || operand.access == Access::Scratch) continue;
    const Region& region = program[operand.region];
    if (writes(operand.access)) {
      results.push_back(region.name);
      types += (types.empty() ? "" : ", ") + region.type.text();
    }
    if (reads(operand.access)) operands.push_back(region.name);
  }
  if (instr.computes())
    for (const Instr& step : bodyOf(instr))
      if (const std::string text = printAttrs(step.attrs); !text.empty())
        attrs += fmt::format("{}{} {}", attrs.empty() ? "" : "\n", instrName(step), text);
  return {operatorsOf(instr), "instruction", instr.origin, types, attrs, operands, results};
}

}  // namespace

size_t StageRecorder::numberOf(const Record& record) {
  const auto [place, isNew] =
      numbers_.try_emplace(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), numbers_.size());
  if (isNew) records_.push_back(record);
  return place->second;
}

nlohmann::json StageRecorder::recordsOf(const Module& module, const Function& function) {
  nlohmann::json numbers = nlohmann::json::array();
  for (const auto& storage : module.storage())
    for (const Use& use : storage->uses())
      if (use.user->function() == &function) {
        numbers.push_back(numberOf(recordOf(*storage)));
        break;
      }
  for (const auto& node : function.nodes()) numbers.push_back(numberOf(recordOf(*node)));
  return numbers;
}

nlohmann::json StageRecorder::recordsOf(const Program& program) {
  nlohmann::json numbers = nlohmann::json::array();
  for (const Instr& instr : program.instrs)
    if (!instr.isMarker()) numbers.push_back(numberOf(recordOf(program, instr)));
  return numbers;
}

void StageRecorder::observe(const StageEvent& event) {
  if (!event.pass.empty()) {
    passes_.push_back({{"name", event.pass}, {"ms", event.seconds * 1e3}, {"changed", event.changed}});
    return;
  }
  nlohmann::json functions = nlohmann::json::array();
  if (event.graph != nullptr) {
    for (const auto& function : event.graph->functions())
      functions.push_back({{"name", function->name()}, {"records", recordsOf(*event.graph, *function)}});
  } else {
    for (const Program& program : event.programs)
      functions.push_back({{"name", program.name}, {"records", recordsOf(program)}});
  }
  stages_.push_back({{"phase", event.phase},
                     {"on", event.graph != nullptr ? "graph" : "instructions"},
                     {"ms", event.seconds * 1e3},
                     {"passes", std::exchange(passes_, nlohmann::json::array())},
                     {"functions", std::move(functions)}});
}

nlohmann::json StageRecorder::json() && { return {{"records", std::move(records_)}, {"stages", std::move(stages_)}}; }

}  // namespace aglow
