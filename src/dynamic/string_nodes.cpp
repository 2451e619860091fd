// Nodes that take or give strings or maps: on the host, or compiled for the numbers that stand for the strings.
#include <algorithm>

#include "compile/evaluate.h"
#include "dynamic/graph_runner.h"

namespace aglow {

using Outputs = Diagnosed<std::vector<ModelValue>>;

namespace {

onnx::KnownValues byName(const onnx::Node& node, const std::vector<ModelValue>& operands) {
  onnx::KnownValues known;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!node.inputs[i].empty()) known[node.inputs[i]] = {.value = operands[i], .constant = false};
  return known;
}

}  // namespace

Outputs GraphRunner::runOnHost(const onnx::Node& node, const std::vector<ModelValue>& operands) {
  const bool fromStrings = !operands.empty() && operands.front().hasStrings();
  const strings::NumberedNode* numbered = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto [it, isNew] = numbered_.try_emplace({&node, fromStrings});
    if (isNew) {
      auto made = strings::numbered(node, opsets_, fromStrings);
      if (!made.ok()) {
        numbered_.erase(it);
        return made.error();
      }
      it->second = *std::move(made);
    }
    numbered = it->second.get();
  }
  if (numbered != nullptr) return runNumbered(node, *numbered, operands);

  const auto onNumbers = [&](const std::vector<ModelValue>& numbers) -> Outputs {
    onnx::Graph graph;
    graph.nodes.push_back(node);
    const size_t first = 0;
    const onnx::KnownValues known = byName(node, numbers);
    ReferenceEvaluator evaluator;
    return onnx::evaluateNode(context_.model, {.graph = graph,
                                               .opsets = opsets_,
                                               .nodes = std::span(&first, 1),
                                               .known = known,
                                               .evaluator = &evaluator,
                                               .tolerance = context_.tolerance});
  };
  return strings::run({.node = node, .operands = operands, .onNumbers = onNumbers});
}

Outputs GraphRunner::runNumbered(const onnx::Node& node, const strings::NumberedNode& numbered,
                                 const std::vector<ModelValue>& operands) {
  GraphRunner* runner = [&] {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<GraphRunner>& made = nested_[&numbered];
    if (!made)
      made = std::make_unique<GraphRunner>(context_, *numbered.graph, numbered.opsets, numbered.graph, depth_ + 1);
    return made.get();
  }();
  std::vector<ModelValue> numbers;
  for (const ModelValue& operand : operands) numbers.push_back(numbered.vocabulary.numbers(operand));
  Outputs computed = runner->run(byName(node, numbers));
  if (!computed.ok()) return computed;
  std::vector<ModelValue> results;
  size_t next = 0;
  for (const std::string& name : node.outputs)
    results.push_back(name.empty() ? ModelValue::absent() : std::move((*computed)[next++]));
  if (numbered.named && !node.outputs.front().empty()) {
    auto named = numbered.vocabulary.strings(results.front());
    if (!named.ok()) return named.error();
    results.front() = *std::move(named);
  }
  return results;
}

}  // namespace aglow
