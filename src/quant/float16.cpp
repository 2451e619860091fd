// Functions in f16.
#include <algorithm>
#include <unordered_map>

#include "graph/builder.h"
#include "quant/islands.h"
#include "quant/narrow.h"

namespace aglow::quant {

namespace {

// What products are made of. The others follow where an operand is of f16 already: their results are about as large as
// their operands, and f16 loses nothing that matters.
constexpr Op kProducts[] = {Op::Conv, Op::MatMul};
constexpr Op kFollowing[] = {Op::Add,       Op::Sub,         Op::Mul,      Op::Max,     Op::Min,     Op::Relu,
                             Op::Clip,      Op::Sigmoid,     Op::Tanh,     Op::Erf,     Op::Gelu,    Op::Swish,
                             Op::HardSwish, Op::HardSigmoid, Op::MaxPool,  Op::AvgPool, Op::Reshape, Op::Transpose,
                             Op::Slice,     Op::Concat,      Op::LeakyRelu};

bool isIn(std::span<const Op> list, Op op) { return std::find(list.begin(), list.end(), op) != list.end(); }

class Narrower {
public:
  Narrower(Function& function, const Names& kept) : function_(function), kept_(kept), builder_(function) {}

  bool run() {
    bool changed = false;
    for (Node* node = function_.front(); node != nullptr;) {
      Node* const next = function_.next(node);
      if (narrows(*node)) {
        replace(*node);
        changed = true;
      }
      node = next;
    }
    return changed;
  }

private:
  bool narrows(const Node& node) const {
    if (node.resultCount() == 0 || node.predicate() || node.type().kind() != ElemKind::Float32 ||
        kept_.contains(node.name()) || kept_.contains(std::string(node.def().name)))
      return false;
    for (int i = 1; i < node.resultCount(); ++i)
      if (node.useCount(i) > 0) return false;
    const std::vector<Value> inputs = node.inputs();
    if (isIn(kProducts, node.op())) return inputs[0].kind() == ElemKind::Float32;
    return isIn(kFollowing, node.op()) &&
           std::any_of(inputs.begin(), inputs.end(), [&](Value v) { return v && narrow_.contains(v); });
  }

  Value narrowed(Value value, Node& reader) {
    if (!value || value.kind() != ElemKind::Float32) return value;
    Value& narrow = narrow_[value];
    if (!narrow) {
      builder_.before(value.node->isStorage() ? function_.front() : function_.next(value.node)).named(reader.name());
      narrow = builder_.casted(value, ElemKind::Float16);
    }
    return narrow;
  }

  void replace(Node& node) {
    std::vector<Value> inputs = node.inputs();
    for (Value& input : inputs) input = narrowed(input, node);
    std::vector<Type> types = node.types();
    for (Type& type : types)
      if (type.kind() == ElemKind::Float32) type = Type(ElemKind::Float16, type.shape());
    Node* made = function_.add(node.attrs(), std::move(types), inputs, node.name(), &node);
    builder_.before(&node).named(node.name());
    const Value wide = builder_.casted(made->result(0), ElemKind::Float32);
    narrow_[wide] = made->result(0);
    replaceAllUses(node.result(0), wide);
    function_.erase(&node);
  }

  Function& function_;
  const Names& kept_;
  Builder builder_;
  std::unordered_map<Value, Value, ValueHash> narrow_;
};

}  // namespace

Result<bool> useFloat16(Function& function, const Names& keepFloat) {
  return building([&] { return Narrower(function, keepFloat).run(); });
}

}  // namespace aglow::quant
