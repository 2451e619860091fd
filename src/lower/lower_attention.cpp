// Attention as two matrix products around a softmax. Heads of q that share a head of k lie one after the other, so they
// join the rows of one product instead of repeating k.
#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/op_views.h"
#include "graph/wide.h"
#include "lower/rules.h"

namespace aglow::lowering {

namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// A bound of the window: the key at which it lies for each query, as a column.
Value boundOf(Builder& b, int64_t queries, int64_t first) {
  std::vector<int64_t> bounds(static_cast<size_t>(queries));
  std::iota(bounds.begin(), bounds.end(), first);
  return b.constant(Tensor::of(Type(ElemKind::Int64, Shape{queries, 1}), bounds));
}

struct Sight {
  Value visible;         // whether a query sees a key; empty when all do
  bool complete = true;  // every query certainly sees a key
};

// Of AttentionNode or ByteAttentionNode.
template <class View>
Sight windowSight(Builder& b, const View& v, int64_t queries, int64_t keys) {
  Sight sight;
  if (v.left() < 0 && v.right() < 0) return sight;
  std::vector<int64_t> positions(static_cast<size_t>(keys));
  std::iota(positions.begin(), positions.end(), 0);
  const Value key = b.ints(positions);
  const auto restrictTo = [&](Value within) {
    sight.visible = sight.visible ? b.logicalAnd(sight.visible, within) : within;
  };
  if (v.left() >= 0) restrictTo(b.lessOrEqual(boundOf(b, queries, v.offset() - v.left()), key));
  if (v.right() >= 0) restrictTo(b.lessOrEqual(key, boundOf(b, queries, v.offset() + v.right())));
  for (const int64_t position : {v.offset(), v.offset() + queries - 1}) {
    const int64_t first = v.left() < 0 ? 0 : std::max<int64_t>(position - v.left(), 0);
    const int64_t last = v.right() < 0 ? keys - 1 : std::min(position + v.right(), keys - 1);
    sight.complete &= first <= last;
  }
  return sight;
}

// What a mask hides, in addition. Minus infinity as an addend hides a key.
Sight maskSight(Builder& b, Value mask, Sight sight) {
  if (mask.rank() == 0) mask = b.reshaped(mask, {1});
  if (mask.kind() != ElemKind::Bool) mask = b.logicalNot(b.equal(mask, b.scalarLike(mask, kHidden)));
  return {sight.visible ? b.logicalAnd(mask, sight.visible) : mask, false};
}

struct Masked {
  Value scores;
  Sight sight;
};

// The window and a mask of truth values hide scores, a mask of numbers adds to them. A row that is hidden whole has no
// softmax.
template <class View>
Masked masking(Builder& b, const View& v, Value scores) {
  Sight sight = windowSight(b, v, scores.dim(2), scores.dim(3));
  Value hiding = sight.visible;
  if (v.mask()) {
    sight = maskSight(b, v.mask(), sight);
    if (v.mask().kind() == ElemKind::Bool)
      hiding = sight.visible;
    else
      scores = b.add(scores, b.casted(v.mask(), scores.kind()));
  }
  if (hiding) scores = b.where(hiding, scores, b.scalar(scores.kind(), kHidden));
  return {scores, sight};
}

// Whether a query sees any key.
Value seesAny(Builder& b, const Sight& sight) { return b.reduced(sight.visible, "max", {sight.visible.rank() - 1}); }

// The weights of each query as shares of the largest one, from 0 to 255, as i32. What they were rounded to sums up to
// the number that values are divided by, so that they still make up one whole.
struct Shares {
  Value weights, total;
};

Shares roundedShares(Builder& b, const Masked& masked) {
  constexpr double kSteps = 255;
  const Value any = masked.sight.complete ? Value{} : seesAny(b, masked.sight);
  Value shares = b.exp(b.sub(masked.scores, b.reduced(masked.scores, "max", {3})));
  if (any) shares = b.where(any, shares, b.scalarLike(shares, 0));
  const Value bytes = b.quantizeLinear(b.casted(shares, ElemKind::Float32), b.scalar(ElemKind::Float32, 1 / kSteps), {},
                                       {.axis = 0, .to = ElemKind::UInt8});
  const Value weights = b.casted(bytes, ElemKind::Int32);
  const Value total = b.casted(b.reduced(weights, "sum", {3}), ElemKind::Float32);
  return {weights, any ? b.max(total, b.scalarLike(total, 1)) : total};
}

}  // namespace

std::vector<Value> attention(Builder& b, Node& node) {
  const AttentionNode v(node);
  const ElemKind kind = v.q().kind();
  const int64_t batch = v.q().dim(0), heads = v.q().dim(1), queries = v.q().dim(2), width = v.q().dim(3);
  const int64_t groups = v.k().dim(1), keys = v.k().dim(2);
  if (v.type(1).elements() == 0)  // also where there are no keys
    return {b.splat({.elem = kind, .shape = v.type(0).shape().dims()}),
            b.splat({.elem = kind, .shape = v.type(1).shape().dims()})};
  const int64_t rows = heads / groups * queries;

  const ElemKind wide = wideKind(kind);
  const Value q = b.reshaped(b.mul(b.casted(v.q(), wide), b.scalar(wide, v.scale())), {batch, groups, rows, width});
  const Value k = b.transposed(b.casted(v.k(), wide), {0, 1, 3, 2});
  const Value scores = b.reshaped(b.matMul(q, k), {batch, heads, queries, keys});
  Value capped = scores;
  if (v.softcap() > 0) {
    const Value limit = b.scalar(wide, v.softcap());
    capped = b.mul(b.tanh(b.div(scores, limit)), limit);
  }

  const Masked hidden = masking(b, v, capped);
  const auto& [masked, sight] = hidden;
  Value weights;
  if (v.rounded()) {
    const Shares shares = roundedShares(b, hidden);
    weights = b.div(b.casted(shares.weights, ElemKind::Float32), shares.total);
  } else {
    weights = b.softmax(b.casted(masked, v.precision() == kind ? wide : v.precision()), {.axis = 3});
  }
  if (!sight.complete) weights = b.where(seesAny(b, sight), weights, b.scalarLike(weights, 0));
  weights = b.casted(weights, wide);

  const Value y = b.matMul(b.reshaped(weights, {batch, groups, rows, keys}), b.casted(v.v(), wide));
  std::vector<Value> results{b.casted(b.reshaped(y, v.type(0).shape().dims()), kind), {}};
  if (node.useCount(1) > 0) {
    const std::string& stage = v.weights();
    results[1] = b.casted(stage == "scores"   ? scores
                          : stage == "capped" ? capped
                          : stage == "masked" ? masked
                                              : weights,
                          kind);
  }
  return results;
}

// Products are exact.
std::vector<Value> byteAttention(Builder& b, Node& node) {
  const ByteAttentionNode v(node);
  const int64_t batch = v.q().dim(0), heads = v.q().dim(1), queries = v.q().dim(2), width = v.q().dim(3);
  const int64_t groups = v.k().dim(1), keys = v.k().dim(2), rows = heads / std::max<int64_t>(groups, 1) * queries;
  const Shape& shape = v.type().shape();
  if (shape.elements() == 0 || keys == 0) return {b.splat({.elem = ElemKind::Float32, .shape = shape.dims()})};
  const auto centered = [&](Value bytes, int64_t offset) {
    const Value wide = b.casted(bytes, ElemKind::Int32);
    return offset == 0 ? wide : b.sub(wide, b.scalar(ElemKind::Int32, static_cast<double>(offset)));
  };
  const auto real = [&](Value sums, double scale) {
    return b.mul(b.casted(sums, ElemKind::Float32), b.scalar(ElemKind::Float32, scale));
  };
  const Value q = b.reshaped(centered(v.q(), v.qOffset()), {batch, groups, rows, width});
  const Value products = b.matMul(q, b.transposed(centered(v.k(), v.kOffset()), {0, 1, 3, 2}));
  const Masked masked = masking(b, v, b.reshaped(real(products, v.scale()), {batch, heads, queries, keys}));
  const Shares shares = roundedShares(b, masked);
  const Value sums = b.matMul(b.reshaped(shares.weights, {batch, groups, rows, keys}), centered(v.v(), v.vOffset()));
  return {b.div(b.reshaped(real(sums, v.vScale()), shape.dims()), shares.total)};
}

}  // namespace aglow::lowering
