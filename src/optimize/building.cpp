#include "optimize/building.h"

#include <algorithm>

#include "ops/all_ops.h"

namespace aglow {

Value expanded(Builder& b, Value x, const Shape& shape) {
  return x.shape() == shape ? x : b.expand(x, {.shape = shape.dims()});
}

Value splat(Builder& b, const Type& type, double value) {
  if (type.rank() == 0) return b.scalar(type.kind(), value);
  return b.splat({.value = value, .elem = type.kind(), .shape = type.shape().dims()});
}

Value like(Builder& b, const Node& node, const std::vector<Value>& inputs) {
  return b.make(inputs, node.attrs())->result();
}

Ints inverse(const Ints& perm) {
  Ints out(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) out[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return out;
}

Ints permuted(const Ints& list, const Ints& perm) {
  Ints out;
  for (const int64_t axis : perm) out.push_back(list[static_cast<size_t>(axis)]);
  return out;
}

Ints compose(const Ints& a, const Ints& b) { return permuted(a, b); }

bool stretchesTo(const Shape& from, const Shape& to) {
  const Result<Shape> common = broadcastShapes(from, to);
  return common.ok() && *common == to;
}

std::optional<Shape> commonShape(const Node& node, int slot, const Shape& shape) {
  Shape common;
  const std::vector<Value> inputs = node.inputs();
  for (int i = 0; i < node.inputCount(); ++i) {
    Result<Shape> next = broadcastShapes(common, i == slot ? shape : inputs[static_cast<size_t>(i)].shape());
    if (!next.ok()) return std::nullopt;
    common = *std::move(next);
  }
  return common;
}

bool isAlong(const Shape& shape, const Shape& of, int axis) {
  const int missing = of.rank() - shape.rank();
  if (missing < 0) return false;
  for (int i = 0; i < shape.rank(); ++i)
    if (shape[i] != 1 && (i + missing != axis || shape[i] != of[axis])) return false;
  return true;
}

Value asVector(Builder& b, Value v, int64_t count) {
  return expanded(b, b.reshaped(v, {v.type().elements()}), Shape{count});
}

Tensor knownTensor(Value v) {
  constexpr int64_t kSmall = 64 << 10;
  if (const Constant* constant = asConstant(v)) return constant->tensor();
  if (!v || v.node->op() != Op::Splat || v.type().bytes() > kSmall) return {};
  return Tensor::fromDoubles(
      v.type(), std::vector<double>(static_cast<size_t>(v.type().elements()), v.node->attrs().real("value")));
}

OpSet unaryOps() {
  OpSet set = pattern::opSet({Op::Cast});
  for (size_t i = 0; i < allOps().size(); ++i) {
    const OpDef& def = *allOps()[i];
    if (def.kind == OpKind::Elementwise && def.in.size() == 1) set.set(i);
  }
  return set.reset(static_cast<size_t>(Op::Expand));
}

bool readOnlyBy(Value v, const Node& node) {
  const std::vector<Use>& uses = v.node->uses();
  return std::all_of(uses.begin(), uses.end(), [&](const Use& use) { return use.user == &node; });
}

}  // namespace aglow
