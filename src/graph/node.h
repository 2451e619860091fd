// Nodes of the graph and the values they compute. Every use of a value is known to the node that makes it.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/op.h"
#include "tensor/tensor.h"

namespace aglow {

class Function;
class Module;
class Node;

// One result of a node. An empty Value stands for an optional operand that is absent.
struct Value {
  Node* node = nullptr;
  int index = 0;

  explicit operator bool() const { return node != nullptr; }
  const Type& type() const;
  const Shape& shape() const { return type().shape(); }
  ElemKind kind() const { return type().kind(); }
  int rank() const { return type().rank(); }
  int64_t dim(int axis) const { return type().dim(axis); }
  bool operator==(const Value&) const = default;
};

// Where a value is used: operand number `slot` of `user`, or its predicate.
struct Use {
  static constexpr int kPredicate = -1;
  Node* user = nullptr;
  int slot = 0;
};

class Node {
public:
  Node(Attrs attrs, std::vector<Type> types, std::string name);
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Op op() const { return op_; }
  const OpDef& def() const { return attrs_.op(); }
  const std::string& name() const { return name_; }
  const Attrs& attrs() const { return attrs_; }
  Function* function() const { return function_; }  // null for storage
  bool isStorage() const { return op_ == Op::Constant || op_ == Op::Placeholder; }

  int inputCount() const { return static_cast<int>(inputs_.size()); }
  // Empty when the operand is absent.
  Value input(int i) const { return i < inputCount() ? inputs_[static_cast<size_t>(i)].value : Value{}; }
  std::vector<Value> inputs() const;
  void setInput(int i, Value value);
  // Where it is false (one bool, or one a row of the batch), the results may be anything and the work may be skipped.
  Value predicate() const { return predicate_.value; }
  void setPredicate(Value value);

  int resultCount() const { return static_cast<int>(types_.size()); }
  Value result(int i = 0) { return {this, i}; }
  const Type& type(int i = 0) const { return types_[static_cast<size_t>(i)]; }
  const std::vector<Type>& types() const { return types_; }

  const std::vector<Use>& uses() const { return uses_; }
  // Uses of one result.
  int useCount(int result) const;

private:
  friend class Function;
  friend class Module;

  // An operand and its place in the list of uses of the node it names, so that both change in constant time.
  struct Slot {
    Value value;
    uint32_t usePosition = 0;
  };
  Slot& slot(int i) { return i == Use::kPredicate ? predicate_ : inputs_[static_cast<size_t>(i)]; }
  void link(int i, Value value);
  void unlink(int i);
  void dropOperands();

  Op op_;
  std::string name_;
  Attrs attrs_;
  std::vector<Slot> inputs_;
  Slot predicate_;
  std::vector<Type> types_;
  std::vector<Use> uses_;
  Function* function_ = nullptr;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

inline const Type& Value::type() const {
  AGLOW_CHECK(node != nullptr, "an absent operand has no type");
  return node->type(index);
}

// Bytes known when compiling. They are shared, never changed; replacing them makes a new Constant.
class Constant : public Node {
public:
  Constant(std::string name, Tensor tensor);
  const Tensor& tensor() const { return tensor_; }

private:
  Tensor tensor_;
};

// Bytes that a run may change: bound by the caller for each run, or state. State begins with its initial value, is
// shared by all functions of the module, and stays from run to run as long as the loaded program does.
class Placeholder : public Node {
public:
  Placeholder(std::string name, Type type);
  Placeholder(std::string name, Tensor initial);

  bool isState() const { return !initial_.empty(); }
  const Tensor& initial() const { return initial_; }  // empty unless it is state

private:
  Tensor initial_;
};

inline const Constant* asConstant(Value v) {
  return v && v.node->op() == Op::Constant ? static_cast<const Constant*>(v.node) : nullptr;
}
inline const Placeholder* asPlaceholder(Value v) {
  return v && v.node->op() == Op::Placeholder ? static_cast<const Placeholder*>(v.node) : nullptr;
}
// What storage holds before anything runs: a constant's bytes, a state's initial value; null where callers bind it.
const Tensor* initialBytes(const Node& storage);
inline bool isConstant(Value v) { return asConstant(v) != nullptr; }

// The base of the generated views (ConvNode and so on): a node whose operator is known.
class NodeView {
public:
  explicit NodeView(Node& node) : node_(&node) {}
  Node& node() const { return *node_; }
  const Attrs& attrs() const { return node_->attrs(); }
  Value input(int i) const { return node_->input(i); }
  std::vector<Value> inputsFrom(int first) const;
  const Type& type(int result = 0) const { return node_->type(result); }

private:
  Node* node_;
};

// The node as a view of V's operator, or nothing when it is another one.
template <class V>
std::optional<V> viewAs(Value v) {
  if (!v || v.node->op() != V::kOp) return std::nullopt;
  return V(*v.node);
}

}  // namespace aglow
