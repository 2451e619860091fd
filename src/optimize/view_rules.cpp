// Reshapes, expansions and casts: merged, moved below what works on single elements, and dropped where broadcasting
// does their work.
#include <algorithm>

#include "ops/all_ops.h"
#include "ops/axes.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

Values keep0(const Match& m, Builder&) { return {m[0]}; }
const Ints& dimsOf(Value v) { return v.shape().dims(); }

bool keepsLastAxis(Value from, Value to) {
  return from.rank() > 0 && to.rank() > 0 && from.dim(from.rank() - 1) == to.dim(to.rank() - 1) &&
         from.type().elements() > 0;
}

// The shape in which an operand that broadcasts to `to` broadcasts to `from`, the same elements under another shape; or
// nothing when there is none. Axes go together in the smallest groups that hold as many elements on both sides: where
// a group is one axis on both sides, or the operand has all of it or nothing, its extents are known.
std::optional<Ints> shapeBefore(const Shape& operand, const Shape& to, const Shape& from) {
  if (to.elements() == 0) return std::nullopt;
  const auto extent = [&](int axis) {
    const int own = axis - (to.rank() - operand.rank());
    return own < 0 ? 1 : operand[own];
  };
  Ints dims(static_cast<size_t>(from.rank()), 1);
  int t = to.rank(), f = from.rank();
  while (t > 0 || f > 0) {
    const int lastTo = t, lastFrom = f;
    int64_t manyTo = 1, manyFrom = 1;
    do {
      if (f == 0 || (t > 0 && manyTo <= manyFrom))
        manyTo *= to[--t];
      else
        manyFrom *= from[--f];
    } while (manyTo != manyFrom);
    int64_t own = 1;
    for (int axis = t; axis < lastTo; ++axis) own *= extent(axis);
    if (own == 1) continue;
    if (own != manyTo) return std::nullopt;
    std::copy(from.dims().begin() + f, from.dims().begin() + lastFrom, dims.begin() + f);
  }
  return dims;
}

// The operands of an elementwise node before they were reshaped alike; empty when they were not. Constants follow where
// they can.
std::vector<Value> beforeReshape(const Node& node, Builder* b) {
  const Shape& to = node.type().shape();
  std::vector<Value> inputs = node.inputs();
  std::optional<Shape> from;
  for (Value& v : inputs) {
    if (v.node->op() != Op::Reshape || v.node->predicate() || v.shape() != to || !readOnlyBy(v, node)) continue;
    v = v.node->input(0);
    if (hasScaledAxis(v) || (from && *from != v.shape())) return {};
    from = v.shape();
  }
  if (!from) return {};
  for (int i = 0; i < node.inputCount(); ++i) {
    Value& v = inputs[static_cast<size_t>(i)];
    if (v != node.input(i) || v.rank() == 0) continue;
    const std::optional<Ints> shape = isConstant(v) ? shapeBefore(v.shape(), to, *from) : std::nullopt;
    if (!shape) return {};
    if (b != nullptr) v = b->reshaped(v, *shape);
  }
  return inputs;
}

// The first operand that is an Expand, or a Reshape that only adds leading ones, without which the node gives the same.
int redundantOperand(const Node& node) {
  const std::vector<Value> inputs = node.inputs();
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const Value v = inputs[static_cast<size_t>(i)];
    if ((v.node->op() != Op::Expand && v.node->op() != Op::Reshape) || v.node->predicate()) continue;
    const Value x = v.node->inputs().front();
    if (!stretchesTo(x.shape(), v.shape()) || x.type().elements() > v.type().elements()) continue;
    if (commonShape(node, i, x.shape()) == node.type().shape()) return i;
  }
  return -1;
}

Value beforeExpand(Value v) {
  return v.node->op() == Op::Expand && !v.node->predicate() ? v.node->inputs().front() : v;
}

// The shape that the operands of an elementwise node have together before they are expanded.
Shape smallerShape(const Node& node) {
  Shape common;
  for (const Value v : node.inputs()) {
    const Result<Shape> next = broadcastShapes(common, beforeExpand(v).shape());
    if (!next.ok()) return node.type().shape();
    common = *next;
  }
  return common;
}

// Whether every value of a kind is one of another kind.
bool isLossless(ElemKind from, ElemKind to) {
  if (from == to || from == ElemKind::Bool) return true;
  const ElemInfo &f = elemInfo(from), &t = elemInfo(to);
  if (isInteger(from) && isInteger(to)) {
    if (isSigned(from) && isUnsigned(to)) return false;
    return t.bits > f.bits || (t.bits == f.bits && f.cls == t.cls);
  }
  // Bits of the significand; kinds of 8 bits and less fit into those below in value and range.
  const int precision = to == ElemKind::Float64    ? 53
                        : to == ElemKind::Float32  ? 24
                        : to == ElemKind::Float16  ? 11
                        : to == ElemKind::BFloat16 ? 8
                                                   : 0;
  if (isInteger(from)) return f.bits <= precision;
  if (!isFloat(from) || !isFloat(to)) return false;
  if (to == ElemKind::Float64) return true;
  return to == ElemKind::Float32 && from != ElemKind::Float64;
}

// Whether a cast may change a value of its own kind: infinities become the largest number of narrow floats.
bool mayClamp(ElemKind kind) { return isFloat(kind) && elemInfo(kind).bits <= 8; }

// Whether converting in one step is converting in two. The first step must lose nothing; and integers that pass as
// floats saturate where integers would wrap, so those must fit at the end as well.
bool isOneCast(ElemKind from, ElemKind through, ElemKind to) {
  if (!isLossless(from, through) || (from == to && mayClamp(to))) return false;
  return !(isInteger(from) && isFloat(through) && isInteger(to)) || isLossless(from, to);
}

std::vector<Rule> reshapes() {
  return {
      {.name = "reshape-nothing",
       .doc = "A reshape to the same shape.",
       .pattern = op(Op::Reshape, {any(0)}),
       .condition = [](const Match& m) { return m[0].type() == m.result().type(); },
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.reshape(x, {.shape = dimsOf(x)});
       }},
      {.name = "reshape-reshape",
       .doc = "Two reshapes are one.",
       .pattern = op(Op::Reshape, {op(Op::Reshape, {any(0)})}),
       .condition = [](const Match& m) { return !hasScaledAxis(m[0]); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.reshaped(m[0], dimsOf(m.result()))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.reshape(b.reshape(x, {.shape = {x.type().elements(), 1}}), {.shape = {1, x.type().elements()}});
       }},
      {.name = "sink-reshape-unary",
       .doc = "A reshape moves below functions of single elements.",
       .pattern = op(unaryOps(), {op(Op::Reshape, {any(0)}).once()}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.reshape(like(b, m.root(), {m[0]}), {.shape = dimsOf(m.result())})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         const Value y = b.reshape(x, {.shape = {x.type().elements(), 1}});
         return rng.flip() ? b.cast(y, {.to = ElemKind::Int32}) : b.elu(y, {.alpha = 0.5});
       }},
      {.name = "sink-reshape-elementwise",
       .doc = "Reshapes from one shape, with constants and scalars, move below an elementwise operator.",
       .pattern = op(opsOf(OpKind::Elementwise)),
       .condition =
           [](const Match& m) {
             return m.root().inputCount() > 1 && m.root().op() != Op::Expand &&
                    !beforeReshape(m.root(), nullptr).empty();
           },
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.reshape(like(b, m.root(), beforeReshape(m.root(), &b)), {.shape = dimsOf(m.result())})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b), y = sampling::input(b, x.shape());
         const Ints flat{x.type().elements(), 1};
         const Value left = b.reshape(x, {.shape = flat}), right = b.reshape(y, {.shape = flat});
         if (rng.flip())
           return rng.flip() ? b.clip(left, sampling::input(b, {}), right) : b.div(left, b.scalarLike(x, 3));
         const Value image = b.reshape(sampling::input(b, {2, 3, 4, 1}), {.shape = {1, 6, 2, 2}});
         const Shape shape = rng.pick<Shape>({{6, 1, 1}, {2, 2}, {1, 1, 1}, {1, 6, 2, 2}, {1}});
         return b.sub(image, sampling::constant(rng, b, shape));
       }},
      {.name = "sink-reshape-softmax",
       .doc = "A reshape that keeps the last axis moves below a softmax along it.",
       .pattern = op(opSet({Op::Softmax, Op::LogSoftmax}), {op(Op::Reshape, {any(0)}).as(1)}),
       .condition =
           [](const Match& m) {
             return axisFromFront(m.root().attrs().integer("axis"), m[1].rank()) == m[1].rank() - 1 &&
                    keepsLastAxis(m[0], m[1]);
           },
       .build = [](const Match& m, Builder& b) -> Values {
         Attrs attrs = m.root().attrs();
         const Value y = b.make({m[0]}, attrs.set("axis", int64_t{m[0].rank() - 1}))->result();
         return {b.reshape(y, {.shape = dimsOf(m.result())})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = b.reshape(sampling::input(b, {2, 3, 4}), {.shape = rng.flip() ? Ints{6, 4} : Ints{1, 6, 4}});
         return rng.flip() ? b.softmax(x, {.axis = -1}) : b.logSoftmax(x, {.axis = x.rank() - 1});
       }},
      {.name = "sink-reshape-matmul",
       .doc = "Rows may be multiplied by a matrix before or after a reshape that keeps them whole.",
       .pattern = op(Op::MatMul, {op(Op::Reshape, {any(0)}).as(1), any(2)}),
       .condition = [](const Match& m) { return m[2].rank() == 2 && m[0].rank() >= 2 && keepsLastAxis(m[0], m[1]); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.reshape(b.matMul(m[0], m[2]), {.shape = dimsOf(m.result())})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = b.reshape(sampling::input(b, {2, 3, 4}), {.shape = rng.flip() ? Ints{6, 4} : Ints{1, 6, 4}});
         return b.matMul(x, sampling::input(b, {4, rng.between(1, 3)}));
       }},
      {.name = "drop-operand-view",
       .doc = "An operand that broadcasting stretches anyway needs no expansion and no leading ones.",
       .pattern = op(opsOf(OpKind::Elementwise)),
       .condition = [](const Match& m) { return m.root().op() != Op::Expand && redundantOperand(m.root()) >= 0; },
       .build = [](const Match& m, Builder& b) -> Values {
         std::vector<Value> inputs = m.root().inputs();
         Value& v = inputs[static_cast<size_t>(redundantOperand(m.root()))];
         v = v.node->input(0);
         return {like(b, m.root(), inputs)};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, sampling::shape(rng, 2, 3));
         const Value y = sampling::input(b, sampling::broadcastable(rng, x.shape()));
         if (rng.flip()) return sampling::either(rng, b, Op::Add, x, b.expand(y, {.shape = dimsOf(x)}));
         Ints ones(static_cast<size_t>(x.rank() - y.rank()), 1);
         ones.insert(ones.end(), dimsOf(y).begin(), dimsOf(y).end());
         return b.where(b.less(x, b.scalarLike(x, 0)), b.reshape(y, {.shape = ones}), x);
       }},
  };
}

std::vector<Rule> expansions() {
  return {
      {.name = "expand-nothing",
       .doc = "An expansion to the same shape.",
       .pattern = op(Op::Expand, {any(0)}),
       .condition = [](const Match& m) { return m[0].shape() == m.result().shape(); },
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.expand(x, {.shape = dimsOf(x)});
       }},
      {.name = "expand-expand",
       .doc = "Two expansions are one, and leading ones need no reshape before an expansion.",
       .pattern = op(Op::Expand, {op(opSet({Op::Expand, Op::Reshape}), {any(0)}).as(1)}),
       .condition =
           [](const Match& m) {
             return stretchesTo(m[0].shape(), m[1].shape()) && m[0].type().elements() <= m[1].type().elements();
           },
       .build = [](const Match& m, Builder& b) -> Values { return {expanded(b, m[0], m.result().shape())}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape to = sampling::shape(rng, 1, 4), middle = sampling::broadcastable(rng, to);
         const Value x = sampling::input(b, sampling::broadcastable(rng, middle), sampling::anyKind(rng));
         return b.expand(b.expand(x, {.shape = middle.dims()}), {.shape = to.dims()});
       }},
      {.name = "expand-as-reshape",
       .doc = "An expansion that repeats nothing is a reshape.",
       .pattern = op(Op::Expand, {any(0)}),
       .condition =
           [](const Match& m) {
             return m[0].type().elements() == m.result().type().elements() && m[0].shape() != m.result().shape();
           },
       .build = [](const Match& m, Builder& b) -> Values { return {b.reshaped(m[0], dimsOf(m.result()))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         Ints dims = dimsOf(x);
         dims.insert(dims.begin(), 1);
         return b.expand(x, {.shape = dims});
       }},
      {.name = "sink-expand-elementwise",
       .doc = "An elementwise operator comes before its operands are repeated, where that is less work.",
       .pattern = op(opsOf(OpKind::Elementwise) | opSet({Op::Cast})),
       .condition =
           [](const Match& m) {
             return m.root().op() != Op::Expand && smallerShape(m.root()).elements() < m.result().type().elements();
           },
       .build = [](const Match& m, Builder& b) -> Values {
         std::vector<Value> inputs = m.root().inputs();
         std::transform(inputs.begin(), inputs.end(), inputs.begin(), beforeExpand);
         return {expanded(b, like(b, m.root(), inputs), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = b.expand(sampling::input(b, {1, 3}), {.shape = {2, 3}});
         const Value y = b.expand(sampling::input(b, {rng.between(1, 2), 1}), {.shape = {2, 3}});
         if (rng.flip()) return rng.flip() ? b.tanh(x) : b.cast(x, {.to = ElemKind::Float64});
         return rng.flip() ? b.mul(x, sampling::input(b, {3}))
                           : b.clip(x, b.scalarLike(x, 0), b.expand(y, {.shape = {4, 2, 3}}));
       }},
      {.name = "expand-into-matmul",
       .doc = "Matrices repeated along leading axes are repeated by the product itself.",
       .pattern = op(Op::MatMul, {any(0), any(1)}),
       .build = [](const Match& m, Builder& b) -> Values {
         // The first operand that can do without; the other one follows when the rule comes back.
         for (const size_t i : {0, 1}) {
           std::vector<Value> inputs{m[0], m[1]};
           Value& v = inputs[i];
           if (v.node->op() != Op::Expand || v.node->predicate()) continue;
           v = v.node->input(0);
           const std::vector<const Type*> types{&inputs[0].type(), &inputs[1].type()};
           const auto inferred = inferTypes(m.root().attrs(), types);
           if (inferred.ok() && inferred->front() == m.result().type()) return {b.matMul(inputs[0], inputs[1])};
         }
         return {};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = b.expand(sampling::input(b, {1, 2, 3}), {.shape = {4, 2, 3}});
         const Value y = sampling::input(b, {4, 3, 2});
         return rng.flip() ? b.matMul(x, y) : b.matMul(y, x);
       }},
  };
}

std::vector<Rule> casts() {
  return {
      {.name = "cast-nothing",
       .doc = "A cast to the same kind.",
       .pattern = op(Op::Cast, {any(0)}),
       .condition = [](const Match& m) { return m[0].kind() == m.result().kind() && !mayClamp(m[0].kind()); },
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.cast(x, {.to = x.kind()});
       }},
      {.name = "cast-cast",
       .doc = "Two casts are one where the first loses nothing.",
       .pattern = op(Op::Cast, {op(Op::Cast, {any(0)}).as(1)}),
       .condition = [](const Match& m) { return isOneCast(m[0].kind(), m[1].kind(), m.result().kind()); },
       .build = [](const Match& m, Builder& b) -> Values {
         if (m[0].kind() == m.result().kind()) return {m[0]};
         return {like(b, m.root(), {m[0]})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const std::vector<ElemKind> kinds{ElemKind::Float32,  ElemKind::Float64,     ElemKind::Float16,
                                           ElemKind::BFloat16, ElemKind::Int8,        ElemKind::UInt8,
                                           ElemKind::Int32,    ElemKind::UInt32,      ElemKind::Int64,
                                           ElemKind::Bool,     ElemKind::Float8E4M3FN};
         while (true) {
           const ElemKind from = rng.pick(kinds), through = rng.pick(kinds), to = rng.pick(kinds);
           if (!isOneCast(from, through, to)) continue;
           return b.cast(b.cast(sampling::anyInput(rng, b, from), {.to = through}), {.to = to});
         }
       }},
  };
}

}  // namespace

std::vector<Rule> viewRules() { return joined({reshapes(), expansions(), casts()}); }

}  // namespace aglow
