// The rules of the graph, checked one by one. Nothing is read through an operand or a use before it is known to belong
// to the module, so that a verifier can look at what a faulty pass left.
#include "graph/verifier.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "ops/all_ops.h"
#include "support/hash.h"
#include "support/quote.h"

namespace aglow {

namespace {

Error badNode(std::string message) { return {.code = Code::BadNode, .message = std::move(message)}; }

Status checkSave(std::span<const Value> inputs) {
  if (inputs.size() != 2 || !inputs[0] || !inputs[1])
    return badNode(fmt::format("expected a value and a target, got {} operands", inputs.size()));
  const Node& target = *inputs[1].node;
  if (target.op() != Op::Placeholder)
    return badNode(
        fmt::format("expected a placeholder to save into, got {} ({})", quoted(target.name()), target.def().name));
  if (inputs[0].type() != target.type())
    return badNode(fmt::format("expected {} as {} has it, got {}", target.type().text(), quoted(target.name()),
                               inputs[0].type().text()));
  return {};
}

struct UseHash {
  size_t operator()(const Use& use) const {
    return mixHash(reinterpret_cast<uintptr_t>(use.user), static_cast<uint64_t>(use.slot));
  }
};
struct UseEqual {
  bool operator()(const Use& a, const Use& b) const { return a.user == b.user && a.slot == b.slot; }
};

class Verifier {
public:
  explicit Verifier(const Module& module) : module_(module) {}

  Status run() {
    AGLOW_OK(collect());
    for (const auto& node : module_.storage()) AGLOW_OK(inside(*node, storageRules(*node)));
    std::unordered_set<std::string_view> names;
    for (const auto& function : module_.functions()) {
      if (!names.insert(function->name()).second)
        return fault(fmt::format("two functions are named {}", quoted(function->name())));
      AGLOW_OK(functionRules(*function));
    }
    if (operands_ != uses_) return fault(fmt::format("{} operands in the module, but {} uses", operands_, uses_));
    return {};
  }

private:
  static Error fault(std::string message) { return {.code = Code::BadVerify, .message = std::move(message)}; }

  // Puts the place before an error, and makes it the verifier's.
  static Status inside(const Node& node, Status status) {
    if (status.ok()) return status;
    Error error = std::move(status).error();
    error.code = Code::BadVerify;
    error = std::move(error).at(fmt::format("node {} ({})", quoted(node.name()), node.def().name));
    if (node.function() != nullptr)
      error = std::move(error).at(fmt::format("function {}", quoted(node.function()->name())));
    return error;
  }

  // All nodes, with the function in whose list they stand.
  Status collect() {
    for (const auto& node : module_.storage()) owner_[node.get()] = nullptr;
    for (const auto& function : module_.functions()) {
      if (&function->module() != &module_)
        return fault(fmt::format("function {} belongs to another module", quoted(function->name())));
      for (const auto& node : function->nodes()) owner_[node.get()] = function.get();
    }
    return {};
  }

  Status storageRules(const Node& node) {
    if (!node.isStorage()) return fault("expected a constant or a placeholder");
    if (node.function() != nullptr) return fault("storage belongs to no function");
    if (module_.findStorage(node.name()) != &node) return fault("its name leads to another storage");
    if (node.resultCount() != 1 || node.inputCount() != 0 || node.predicate())
      return fault("storage has one result and no operand");
    if (const Tensor* bytes = initialBytes(node)) {
      if (bytes->empty()) return fault("a constant without bytes");
      if (bytes->type() != node.type())
        return fault(fmt::format("expected bytes of type {}, got {}", node.type().text(), bytes->type().text()));
    }
    return useRules(node);
  }

  Status functionRules(const Function& function) {
    std::unordered_set<std::string_view> names;
    std::unordered_set<const Node*> before;
    std::unordered_set<const Node*> written;
    for (const auto& node : function.nodes()) {
      AGLOW_OK(inside(*node, nodeRules(*node, function, before)));
      if (!names.insert(node->name()).second) return inside(*node, fault("its name is taken by another node"));
      if (node->op() == Op::Save && !written.insert(node->input(1).node).second)
        return inside(*node, fault(fmt::format("{} is written twice", quoted(node->input(1).node->name()))));
      before.insert(node.get());
    }
    return {};
  }

  Status nodeRules(const Node& node, const Function& function, const std::unordered_set<const Node*>& before) {
    if (node.function() != &function) return fault("the node stands in a list that is not its function's");
    if (node.isStorage()) return fault("storage belongs to the module");
    const std::vector<Value> inputs = node.inputs();
    for (int i = 0; i < node.inputCount(); ++i) AGLOW_OK(operandRules(inputs[static_cast<size_t>(i)], i, before));
    AGLOW_OK(operandRules(node.predicate(), Use::kPredicate, before));
    AGLOW_TRY(const std::vector<Type> types, checkedTypes(node.attrs(), inputs, node.predicate()));
    if (types.size() != node.types().size())
      return fault(fmt::format("expected {} results, got {}", types.size(), node.types().size()));
    for (size_t i = 0; i < types.size(); ++i)
      if (types[i] != node.types()[i])
        return fault(fmt::format("result {}: expected {}, got {}", i, types[i].text(), node.types()[i].text()));
    return useRules(node);
  }

  Status operandRules(Value value, int slot, const std::unordered_set<const Node*>& before) {
    if (!value) return {};
    ++operands_;
    const auto bad = [slot](const std::string& message) {
      return fault((slot == Use::kPredicate ? "the predicate" : fmt::format("operand {}", slot)) + message);
    };
    const auto found = owner_.find(value.node);
    if (found == owner_.end()) return bad(" is not a node of the module");
    if (found->second != nullptr && !before.contains(value.node))
      return bad(fmt::format(" is {}, which does not stand before it in the function", quoted(value.node->name())));
    if (value.index < 0 || value.index >= value.node->resultCount())
      return bad(fmt::format(" is result {} of {}, which has {}", value.index, quoted(value.node->name()),
                             value.node->resultCount()));
    return {};
  }

  // Every use leads to an operand that leads back, none is listed twice. With as many uses as operands in the whole
  // module, every operand is then listed.
  Status useRules(const Node& node) {
    std::unordered_set<Use, UseHash, UseEqual> seen;
    for (const Use& use : node.uses()) {
      if (!owner_.contains(use.user)) return fault("its list of uses names a node that is not in the module");
      const bool slotExists = use.slot >= Use::kPredicate && use.slot < use.user->inputCount();
      const Value value = !slotExists                   ? Value{}
                          : use.slot == Use::kPredicate ? use.user->predicate()
                                                        : use.user->input(use.slot);
      if (value.node != &node)
        return fault(fmt::format("its list of uses names operand {} of {}, which is another value", use.slot,
                                 quoted(use.user->name())));
      if (!seen.insert(use).second)
        return fault(fmt::format("its list of uses names operand {} of {} twice", use.slot, quoted(use.user->name())));
      ++uses_;
    }
    return {};
  }

  const Module& module_;
  std::unordered_map<const Node*, const Function*> owner_;
  size_t operands_ = 0;
  size_t uses_ = 0;
};

}  // namespace

Result<std::vector<Type>> checkedTypes(const Attrs& attrs, std::span<const Value> inputs, Value predicate) {
  if (predicate && (predicate.kind() != ElemKind::Bool || predicate.rank() > 1))
    return badNode(fmt::format("expected a predicate of type bool[] or bool[n], got {}", predicate.type().text()));
  const Op op = opOf(attrs.op());
  if (op == Op::Save) {
    AGLOW_OK(checkSave(inputs));
    return std::vector<Type>{};
  }
  if (op == Op::Constant || op == Op::Placeholder) return badNode("storage belongs to the module, not to a function");
  std::vector<const Type*> types;
  types.reserve(inputs.size());
  for (const Value v : inputs) types.push_back(v ? &v.type() : nullptr);
  return inferTypes(attrs, types);
}

Status verify(const Module& module) { return Verifier(module).run(); }

}  // namespace aglow
