#include "runtime/partition_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "graph/builder.h"
#include "graph/verifier.h"
#include "support/quote.h"

namespace aglow {

namespace {

// Storage of one module in another, made where it is first asked for.
class StorageCopies {
public:
  explicit StorageCopies(Module& into) : into_(into) {}

  Value operator()(const Node& storage) {
    Node*& copy = copies_[&storage];
    if (copy == nullptr) {
      if (storage.op() == Op::Constant) {
        copy = into_.addConstant(storage.name(), static_cast<const Constant&>(storage).tensor());
      } else {
        const auto& placeholder = static_cast<const Placeholder&>(storage);
        copy = placeholder.isState() ? into_.addState(placeholder.name(), placeholder.initial())
                                     : into_.addPlaceholder(placeholder.name(), placeholder.type());
      }
    }
    return {copy, 0};
  }

private:
  Module& into_;
  std::map<const Node*, Node*> copies_;
};

using ValueKey = std::pair<const Node*, int>;
ValueKey keyOf(Value value) { return {value.node, value.index}; }

// The functions of the parts, node by node in the order of the whole.
class Cutter {
public:
  Cutter(Module& into, const PartitionGraph& graph, const std::vector<size_t>& labels, size_t parts)
      : into_(into), storage_(into), graph_(graph), labels_(labels), copies_(parts) {
    for (size_t i = 0; i < parts; ++i) functions_.push_back(into.addFunction(fmt::format("part{}", i)));
  }

  void cut(const Function& whole) {
    // Storage in the order of the whole's, which is that of the bindings.
    for (const auto& node : whole.module().storage())
      if (node->op() == Op::Placeholder && isUsedBy(*node, whole)) storage_(*node);
    for (const auto& node : whole.nodes()) {
      if (graph_.carried.contains(node.get())) continue;
      const size_t part = labels_[graph_.unitOf.at(node.get())];
      copy(*node, part);
    }
    for (const ValueKey& key : order_) {
      const Sent& sent = sent_.at(key);
      Builder(*functions_[sent.maker]).save({copies_[sent.maker].at(key.first), key.second}, sent.placeholder);
    }
  }

  const std::vector<Function*>& functions() const { return functions_; }
  // The part that makes what a placeholder between parts holds; none: the network's own.
  std::optional<size_t> makerOf(const Placeholder* placeholder) const {
    for (const auto& [key, sent] : sent_)
      if (sent.placeholder == placeholder) return sent.maker;
    return std::nullopt;
  }

private:
  struct Sent {
    size_t maker = 0;
    Placeholder* placeholder = nullptr;
  };

  static bool isUsedBy(const Node& storage, const Function& function) {
    return std::any_of(storage.uses().begin(), storage.uses().end(),
                       [&](const Use& use) { return use.user->function() == &function; });
  }

  Node* copy(const Node& node, size_t part) {
    std::vector<Value> inputs;
    for (const Value value : node.inputs()) inputs.push_back(value ? operand(value, part) : Value{});
    const Value predicate = node.predicate() ? operand(node.predicate(), part) : Value{};
    return copies_[part][&node] = cloneNode(node, inputs, predicate, *functions_[part]);
  }

  Value operand(Value value, size_t part) {
    if (value.node->isStorage()) return storage_(*value.node);
    if (graph_.carried.contains(value.node)) {
      const auto own = copies_[part].find(value.node);
      return {own == copies_[part].end() ? copy(*value.node, part) : own->second, value.index};
    }
    const size_t maker = labels_[graph_.unitOf.at(value.node)];
    if (maker == part) return {copies_[part].at(value.node), value.index};
    Sent& sent = sent_[keyOf(value)];
    if (sent.placeholder == nullptr) {
      const std::string name =
          value.index == 0 ? value.node->name() : fmt::format("{}.{}", value.node->name(), value.index);
      sent = {maker, into_.addPlaceholder(name, value.type())};
      order_.push_back(keyOf(value));
    }
    return {sent.placeholder, 0};
  }

  Module& into_;
  StorageCopies storage_;
  const PartitionGraph& graph_;
  const std::vector<size_t>& labels_;
  std::vector<Function*> functions_;
  std::vector<std::map<const Node*, Node*>> copies_;  // by part
  std::map<ValueKey, Sent> sent_;
  std::vector<ValueKey> order_;  // in which they are first read: addresses have none that stays
};

// Labels without gaps.
size_t compress(std::vector<size_t>& labels, std::vector<std::string>& devices) {
  const std::set<size_t> used(labels.begin(), labels.end());
  std::map<size_t, size_t> numbers;
  std::vector<std::string> kept;
  for (const size_t label : used) {
    numbers.emplace(label, numbers.size());
    kept.push_back(devices[label]);
  }
  for (size_t& label : labels) label = numbers[label];
  devices = std::move(kept);
  return used.size();
}

Status checkPorts(const std::vector<Port>& ports) {
  for (const Port& port : ports)
    if ((port.kind != Port::Kind::Tensor && port.kind != Port::Kind::Frozen) || port.labels)
      return Error{.code = Code::UnsupportedFeature,
                   .message = fmt::format("{} is no tensor of numbers: such a network is not cut", quoted(port.name))};
  return {};
}

}  // namespace

std::unique_ptr<Module> moduleOf(const Function& function) {
  auto module = std::make_unique<Module>();
  StorageCopies storage(*module);
  Function* const copy = module->addFunction(function.name());
  for (const Placeholder* placeholder : inputsOf(function)) storage(*placeholder);
  for (const Placeholder* placeholder : outputsOf(function)) storage(*placeholder);
  std::map<const Node*, Node*> copies;
  const auto mapped = [&](Value value) -> Value {
    if (!value) return {};
    return value.node->isStorage() ? storage(*value.node) : Value{copies.at(value.node), value.index};
  };
  for (const auto& node : function.nodes()) {
    std::vector<Value> inputs;
    for (const Value value : node->inputs()) inputs.push_back(mapped(value));
    copies[node.get()] = cloneNode(*node, inputs, mapped(node->predicate()), *copy);
  }
  return module;
}

Result<Partition> buildPartition(const Function& whole, const Interface& interface, const PartitionGraph& graph,
                                 std::vector<size_t> labels, std::vector<std::string> devices, bool pinned,
                                 std::vector<std::string> calledOut) {
  AGLOW_OK(checkPorts(interface.inputs));
  AGLOW_OK(checkPorts(interface.outputs));
  const size_t parts = compress(labels, devices);
  auto module = std::make_shared<Module>();
  Cutter cutter(*module, graph, labels, parts);
  cutter.cut(whole);
  AGLOW_OK(verify(*module));

  Partition partition;
  partition.calledOut = std::move(calledOut);
  const std::vector<PartEstimate> estimates = estimateParts(graph, labels, parts);
  std::map<std::string, Wire> made;  // by placeholder
  for (size_t i = 0; i < parts; ++i) {
    const Function& own = *cutter.functions()[i];
    const PartEstimate& estimate = estimates[i];
    NetworkPart part{.name = own.name(),
                     .inputs = {},
                     .outputs = {},
                     .cost = {.flops = estimate.flops,
                              .microseconds = estimate.microseconds,
                              .constantBytes = estimate.constantBytes,
                              .arenaBytes = estimate.arenaBytes},
                     .device = pinned ? devices[i] : std::string(),
                     .hasState = !statesOf(own).empty()};
    for (const Placeholder* placeholder : inputsOf(own)) {
      Wire& wire = part.inputs[placeholder->name()];
      if (cutter.makerOf(placeholder)) {
        wire = made.at(placeholder->name());
        continue;
      }
      const auto port = std::find_if(interface.inputs.begin(), interface.inputs.end(),
                                     [&](const Port& input) { return input.placeholder == placeholder->name(); });
      AGLOW_CHECK(port != interface.inputs.end(), "nothing gives a part its input " + placeholder->name());
      wire.name = port->name;
    }
    for (const Placeholder* placeholder : outputsOf(own)) {
      made[placeholder->name()] = {.part = i, .output = part.outputs.size()};
      part.outputs.push_back(placeholder->name());
    }
    partition.facts.push_back({.function = own.name(),
                               .device = devices[i],
                               .nodes = own.size(),
                               .microseconds = estimate.microseconds,
                               .inBytes = estimate.inBytes,
                               .outBytes = estimate.outBytes});
    partition.graph.parts.push_back(std::move(part));
  }
  for (const Port& port : interface.outputs) {
    const auto wire = made.find(port.placeholder);
    if (wire == made.end())
      return Error{
          .code = Code::UnsupportedFeature,
          .message = fmt::format("output {} is written by no node: such a network is not cut", quoted(port.name))};
    partition.graph.outputs.push_back(wire->second);
  }
  partition.module = std::move(module);
  return partition;
}

}  // namespace aglow
