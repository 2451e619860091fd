// Attention found again in its parts: two matrix products around a softmax, with a factor and a mask between them.
#include <cmath>
#include <numeric>

#include "graph/op_views.h"
#include "ops/axes.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

// The scores q * k, as 4, with k transposed: q as 0, k as 1. A factor is 3, a divisor 7.
Pattern scores() {
  const Pattern product = op(Op::MatMul, {any(0), any(1)}).as(4);
  return either({product, op(Op::Mul, {product, number(3)}), op(Op::Div, {product, number(7)})});
}

// The scores with a mask: addends as 6; or truth values as 8, with the number that hides a score as 9 and the choice as
// 10.
Pattern maskedScores() {
  return either({scores(), op(Op::Add, {scores(), any(6)}), op(Op::Where, {any(8), scores(), number(9)}).as(10),
                 op(Op::Where, {any(8), number(9), scores()}).as(10)});
}

// A score that a softmax makes nothing of, whatever the others are.
constexpr double kHidden = -1e9;

// The mask as Attention takes it: true, or an addend, for the keys that a query sees.
Value maskOf(const Match& m, Builder& b) {
  if (m[6]) return m[6];
  if (!m[8]) return {};
  const bool hidesTrue = m.node(10).input(1) == m[9];
  return hidesTrue ? b.logicalNot(m[8]) : m[8];
}

// Four axes: the heads may be part of the batch, and have no axis of their own then.
Value withHeads(Builder& b, Value v) {
  if (v.rank() != 3) return v;
  return b.reshaped(v, {v.dim(0), 1, v.dim(1), v.dim(2)});
}

// Whether the operands of the product have the same leading axes, so that none of them is repeated.
bool isAttention(const Match& m) {
  const Value q = m[0], k = m[1], v = m[2], scores = m[4];
  const int rank = q.rank();
  if ((rank != 3 && rank != 4) || k.rank() != rank || v.rank() != rank) return false;
  for (int i = 0; i + 2 < rank; ++i)
    if (q.dim(i) != k.dim(i) || q.dim(i) != v.dim(i)) return false;
  if (axisFromFront(m.attrs(5).integer("axis"), rank) != rank - 1) return false;
  if (m[9] && m.number(9) > kHidden) return false;
  // A mask works on single scores; it does not make more of them.
  const Value mask = m[6] ? m[6] : m[8];
  return !mask || stretchesTo(mask.shape(), scores.shape());
}

Values buildAttention(const Match& m, Builder& b) {
  const Value q = withHeads(b, m[0]), v = withHeads(b, m[2]);
  const Value k = b.transposed(withHeads(b, m[1]), {0, 1, 3, 2});
  const ElemKind precision = q.kind() == ElemKind::Float64 ? ElemKind::Float64 : ElemKind::Float32;
  const double scale = m[3] ? m.number(3) : m[7] ? 1 / m.number(7) : 1;
  Value mask = maskOf(m, b);
  if (mask && m[0].rank() == 3) mask = withHeads(b, mask);
  const Value y = b.attention(q, k, v, mask, {.scale = scale, .precision = precision})->result();
  return {b.reshaped(y, m.result().shape().dims())};
}

}  // namespace

std::vector<Rule> attentionRules() {
  return {
      {.name = "attention",
       .doc =
           "softmax(scale * q * k^T + mask) * v is Attention. Relaxed: a query whose keys are all hidden gives zeros, "
           "and numbers up to -1e9 in place of scores hide them whatever the other scores are.",
       .kinds = kReals,
       .pattern = op(Op::MatMul, {op(Op::Softmax, {maskedScores()}).once().as(5), any(2)}),
       .condition = isAttention,
       .build = buildAttention,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const bool heads = rng.flip();
         const int64_t queries = rng.between(1, 3), keys = rng.between(1, 3), width = rng.between(1, 3);
         const auto in = [&](int64_t rows, int64_t columns) {
           return sampling::input(b, heads ? Shape{2, 3, rows, columns} : Shape{2, rows, columns});
         };
         const Value q = in(queries, width), k = in(keys, width), v = in(keys, 2);
         const Value kt = b.transpose(k, {.perm = heads ? Ints{0, 1, 3, 2} : Ints{0, 2, 1}});
         Value s = b.matMul(q, kt);
         const double root = std::sqrt(static_cast<double>(width));
         if (rng.flip()) s = rng.flip() ? b.div(s, b.scalarLike(s, root)) : b.mul(s, b.scalarLike(s, 1 / root));
         const Shape mask = sampling::broadcastable(rng, s.shape());
         // The first key is never hidden.
         Ints places(static_cast<size_t>(keys));
         std::iota(places.begin(), places.end(), 0);
         const Value first = b.equal(b.ints(places), b.scalar(ElemKind::Int64, 0));
         const Value seen = b.logicalOr(sampling::input(b, mask, ElemKind::Bool), first);
         switch (rng.between(0, 3)) {
           case 0:
             s = sampling::either(rng, b, Op::Add, s, sampling::input(b, mask));
             break;
           case 1:
             s = b.where(seen, s, b.scalarLike(s, -1e30));
             break;
           case 2:
             s = b.where(b.logicalNot(seen), b.scalarLike(s, -1e30), s);
             break;
           default:
             break;
         }
         return b.matMul(b.softmax(s, {.axis = -1}), v);
       },
       .keeps = Keeps::Finite},
  };
}

}  // namespace aglow
