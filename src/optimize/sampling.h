// Pieces from which rules build their random samples: small shapes, inputs and constants.
#pragma once

#include "rewrite/rule.h"

namespace aglow::sampling {

// Extents from 1 to 4.
Shape shape(Rng& rng, int minRank, int maxRank);
// The shape, or one that stretches to it: leading axes left out, extents made 1.
Shape broadcastable(Rng& rng, const Shape& to);
std::vector<int64_t> perm(Rng& rng, int rank);

ElemKind floatKind(Rng& rng);
ElemKind intKind(Rng& rng);
ElemKind anyKind(Rng& rng);

Value input(Builder& b, Shape shape, ElemKind kind = ElemKind::Float32);
// Numbers from low to high; integers where the kind is one.
Value constant(Rng& rng, Builder& b, const Shape& shape, ElemKind kind = ElemKind::Float32, double low = -2,
               double high = 2);
// The same number at every element: a scalar, a larger constant or a Splat. The type of the result of an elementwise
// node with a value of this shape is not changed by it.
Value number(Rng& rng, Builder& b, double value, const Shape& shape, ElemKind kind = ElemKind::Float32);

// An operator on an input and a number, in either order where it commutes; the number may have the larger shape.
Value withNumber(Rng& rng, Builder& b, Op op, double value, ElemKind kind);
// An input of some shape.
Value anyInput(Rng& rng, Builder& b, ElemKind kind = ElemKind::Float32);

// Some elements of x, with steps of either sign.
Value slice(Rng& rng, Builder& b, Value x);

// Both orders of the operands of a commutative operator.
Value either(Rng& rng, Builder& b, Op op, Value x, Value y);
Value apply(Builder& b, Op op, std::vector<Value> operands);

}  // namespace aglow::sampling
