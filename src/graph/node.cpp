#include "graph/node.h"

namespace aglow {

Node::Node(Attrs attrs, std::vector<Type> types, std::string name)
    : op_(opOf(attrs.op())), name_(std::move(name)), attrs_(std::move(attrs)), types_(std::move(types)) {}

std::vector<Value> Node::inputs() const {
  std::vector<Value> values;
  values.reserve(inputs_.size());
  for (const Slot& s : inputs_) values.push_back(s.value);
  return values;
}

void Node::link(int i, Value value) {
  Slot& s = slot(i);
  s.value = value;
  if (!value) return;
  s.usePosition = static_cast<uint32_t>(value.node->uses_.size());
  value.node->uses_.push_back({this, i});
}

void Node::unlink(int i) {
  Slot& s = slot(i);
  if (!s.value) return;
  std::vector<Use>& uses = s.value.node->uses_;
  // The last use moves into the gap; its owner records where it now stands.
  uses[s.usePosition] = uses.back();
  uses[s.usePosition].user->slot(uses[s.usePosition].slot).usePosition = s.usePosition;
  uses.pop_back();
  s.value = {};
}

void Node::setInput(int i, Value value) {
  AGLOW_CHECK(i >= 0 && i < inputCount(), "no such operand");
  unlink(i);
  link(i, value);
}

void Node::setPredicate(Value value) {
  unlink(Use::kPredicate);
  link(Use::kPredicate, value);
}

void Node::dropOperands() {
  for (int i = Use::kPredicate; i < inputCount(); ++i) unlink(i);
}

int Node::useCount(int result) const {
  int count = 0;
  for (const Use& use : uses_)
    if (use.user->slot(use.slot).value.index == result) ++count;
  return count;
}

Constant::Constant(std::string name, Tensor tensor)
    : Node(Attrs(opDef(Op::Constant)), {tensor.type()}, std::move(name)), tensor_(std::move(tensor)) {}

Placeholder::Placeholder(std::string name, Type type)
    : Node(Attrs(opDef(Op::Placeholder)), {std::move(type)}, std::move(name)) {}

Placeholder::Placeholder(std::string name, Tensor initial)
    : Node(Attrs(opDef(Op::Placeholder)), {initial.type()}, std::move(name)), initial_(std::move(initial)) {}

const Tensor* initialBytes(const Node& storage) {
  if (storage.op() == Op::Constant) return &static_cast<const Constant&>(storage).tensor();
  const auto& placeholder = static_cast<const Placeholder&>(storage);
  return placeholder.isState() ? &placeholder.initial() : nullptr;
}

std::vector<Value> NodeView::inputsFrom(int first) const {
  std::vector<Value> values;
  for (int i = first; i < node_->inputCount(); ++i) values.push_back(node_->input(i));
  return values;
}

}  // namespace aglow
