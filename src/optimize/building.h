// What many rules need to build their replacements.
#pragma once

#include "ops/kind_sets.h"
#include "rewrite/rule.h"

namespace aglow {

using Ints = std::vector<int64_t>;

// x repeated to fill a shape; x itself when it fills it already.
Value expanded(Builder& b, Value x, const Shape& shape);
// The same number at every element of a type.
Value splat(Builder& b, const Type& type, double value);
// A node like another one, with other operands.
Value like(Builder& b, const Node& node, const std::vector<Value>& inputs);
// A number as a scalar constant of a value's kind, for operands that broadcast.
inline Value scalarOf(Builder& b, const Match& m, int capture) {
  return b.scalar(m[capture].kind(), m.number(capture));
}

// The order that undoes one, and one order after another (first `a`, then `b`).
Ints inverse(const Ints& perm);
Ints compose(const Ints& a, const Ints& b);
// The elements of a list in another order: result i is list[perm[i]].
Ints permuted(const Ints& list, const Ints& perm);

// Whether a shape stretches to another one without changing it.
bool stretchesTo(const Shape& from, const Shape& to);
// The shape that operands of an elementwise node have together, with operand `slot` of another shape.
std::optional<Shape> commonShape(const Node& node, int slot, const Shape& shape);

// Whether a shape has one value for each index of an axis of another one, or one for all.
bool isAlong(const Shape& shape, const Shape& of, int axis);
// A value of such a shape as a vector of that many elements.
Value asVector(Builder& b, Value v, int64_t count);

// The value of a Constant, or of a Splat of few bytes; otherwise an empty tensor.
Tensor knownTensor(Value v);

// Elementwise operators with one operand, and casts: what moves freely through changes of layout.
OpSet unaryOps();
// Whether all readers of a value are this node.
bool readOnlyBy(Value v, const Node& node);
// Whether scales belong to an axis: such types do not follow every change of layout.
inline bool hasScaledAxis(Value v) { return v.type().quant().axis >= 0; }

// Kinds on which arithmetic behaves as in school up to rounding: floats with signs, zero and enough digits.
inline constexpr KindSet kReals = kindSet(ElemKind::Float32, ElemKind::Float64, ElemKind::Float16, ElemKind::BFloat16);
inline constexpr KindSet kNumerics = kReals | kinds::ints;

}  // namespace aglow
