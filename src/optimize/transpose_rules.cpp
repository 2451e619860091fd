// Transposes: two are one, and each moves down past operators that do not care about the order of axes, until it meets
// another one and cancels, or stands before an output or an operator that needs it.
#include <algorithm>
#include <numeric>

#include "graph/op_views.h"
#include "ops/axes.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

const Ints& permOf(const Node& node) { return node.attrs().ints("perm"); }
Pattern transposed() { return op(Op::Transpose, {any(0)}).once().as(1); }
int64_t mapped(const Ints& perm, int64_t axis) { return perm[static_cast<size_t>(axis)]; }

// Whether the axes that have more than one index keep their order, so that no element moves.
bool movesNothing(const Shape& shape, const Ints& perm) {
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if (shape[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// A byte becomes an i32, which is what products of integers take.
bool widensBytes(const Node& node) {
  return node.op() == Op::Cast && node.type().kind() == ElemKind::Int32 && elemInfo(node.input(0).kind()).bits == 8;
}

// The order that all transposed operands of an elementwise node share; empty when the node cannot move above them.
Ints sharedPerm(const Node& node) {
  const Node* first = nullptr;
  for (const Value v : node.inputs()) {
    if (v.node->op() == Op::Transpose && !v.node->predicate()) {
      if (v.shape() != node.type().shape() || !readOnlyBy(v, node)) return {};
      if (first != nullptr && permOf(*first) != permOf(*v.node)) return {};
      first = v.node;
    } else if (!isConstant(v) && v.rank() != 0) {
      return {};
    }
  }
  return first == nullptr ? Ints{} : permOf(*first);
}

// An operand as it must be for the order before the transpose.
Value beforeTranspose(Builder& b, Value v, const Ints& perm) {
  if (v.node->op() == Op::Transpose) return v.node->input(0);
  if (v.rank() == 0) return v;
  Ints dims(perm.size(), 1);
  std::copy_backward(v.shape().dims().begin(), v.shape().dims().end(), dims.end());
  return b.transposed(b.reshaped(v, dims), inverse(perm));
}

// The axes that are left after a reduction without keepdims, renumbered.
Ints remaining(const Ints& perm, const Ints& reduced) {
  Ints left, sorted;
  for (const int64_t axis : perm)
    if (std::find(reduced.begin(), reduced.end(), axis) == reduced.end()) left.push_back(axis);
  sorted = left;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t& axis : left) axis = std::lower_bound(sorted.begin(), sorted.end(), axis) - sorted.begin();
  return left;
}

Value transposeOf(Rng& rng, Builder& b, Value x) { return b.transpose(x, {.perm = sampling::perm(rng, x.rank())}); }
Value sampleTransposed(Rng& rng, Builder& b, ElemKind kind = ElemKind::Float32) {
  return transposeOf(rng, b, sampling::input(b, sampling::shape(rng, 2, 4), kind));
}

std::vector<Rule> merges() {
  return {
      {.name = "transpose-nothing",
       .doc = "A transpose that keeps the order of axes.",
       .pattern = op(Op::Transpose, {any(0)}),
       .condition = [](const Match& m) { return std::is_sorted(permOf(m.root()).begin(), permOf(m.root()).end()); },
       .build = [](const Match& m, Builder&) -> Values { return {m[0]}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         Ints order(static_cast<size_t>(x.rank()));
         std::iota(order.begin(), order.end(), 0);
         return b.transpose(x, {.perm = order});
       }},
      {.name = "transpose-transpose",
       .doc = "Two transposes are one.",
       .pattern = op(Op::Transpose, {op(Op::Transpose, {any(0)}).as(1)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.transposed(m[0], compose(permOf(m.node(1)), permOf(m.root())))};
       },
       .sample = [](Rng& rng, Builder& b) -> Value { return transposeOf(rng, b, sampleTransposed(rng, b)); }},
      {.name = "transpose-as-reshape",
       .doc = "A transpose that only moves axes of extent 1 is a reshape.",
       .pattern = op(Op::Transpose, {any(0)}),
       .condition = [](const Match& m) { return !hasScaledAxis(m[0]) && movesNothing(m[0].shape(), permOf(m.root())); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.reshaped(m[0], m.result().shape().dims())}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {1, rng.between(1, 4), 1, rng.between(1, 4)}, sampling::anyKind(rng));
         return b.transpose(x, {.perm = rng.pick<Ints>({{1, 0, 3, 2}, {2, 1, 3, 0}, {1, 3, 0, 2}})});
       }},
  };
}

// Whether a transpose turns matrices: the last two axes change places.
bool turnsMatrices(const Node& node) {
  Ints perm = permOf(node);
  if (perm.size() < 2) return false;
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return std::is_sorted(perm.begin(), perm.end());
}

Value turned(Builder& b, Value x) {
  Ints perm(static_cast<size_t>(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return b.transposed(x, perm);
}

// What a product by a turned weight owes that weight has one turn too many, as gradients come.
std::vector<Rule> products() {
  return {
      {.name = "transpose-product",
       .doc = "The transposed product of a transposed matrix is that of both the other way around.",
       .pattern = op(Op::Transpose, {op(Op::MatMul, {op(Op::Transpose, {any(0)}).as(1), any(2)}).once()}),
       .condition =
           [](const Match& m) {
             return m[2].rank() >= 2 && m.root().type().rank() == m.root().input(0).rank() && turnsMatrices(m.root()) &&
                    turnsMatrices(m.node(1));
           },
       .build = [](const Match& m, Builder& b) -> Values { return {b.matMul(turned(b, m[2]), m[0])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const int64_t k = rng.between(1, 4);
         const bool many = rng.flip();
         const Value a = sampling::input(b, many ? Shape{2, k, 3} : Shape{k, 3});
         const Value y = b.matMul(turned(b, a), sampling::input(b, {k, rng.between(1, 4)}));
         return turned(b, y);
       },
       .keeps = Keeps::Rounding},
      {.name = "add-products",
       .doc =
           "Sums of products of short transposed matrices, as steps of time give, are one product of those below each "
           "other. Relaxed: where infinities meet on the way, the sum may be NaN.",
       .pattern = op(Op::Add, {op(Op::MatMul, {op(Op::Transpose, {any(0)}).as(1), any(2)}).once(),
                               op(Op::MatMul, {op(Op::Transpose, {any(3)}).as(4), any(5)}).once()}),
       .condition =
           [](const Match& m) {
             for (const int i : {0, 2, 3, 5})
               if (m[i].rank() != 2) return false;
             // Adding results takes longer than copying what one of them is made of.
             const int64_t rows = m[0].dim(1), columns = m[2].dim(1), depth = std::min(m[0].dim(0), m[3].dim(0));
             return m[3].dim(1) == rows && m[5].dim(1) == columns && turnsMatrices(m.node(1)) &&
                    turnsMatrices(m.node(4)) && isFloat(m[0].kind()) && depth * (rows + columns) < rows * columns;
           },
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.matMul(turned(b, b.concat({m[0], m[3]}, {.axis = 0})), b.concat({m[2], m[5]}, {.axis = 0}))};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const auto product = [&] {
           const int64_t depth = rng.between(1, 2);
           return b.matMul(turned(b, sampling::input(b, {depth, 7})), sampling::input(b, {depth, 6}));
         };
         const Value first = product();
         return b.add(first, product());
       },
       .keeps = Keeps::Finite},
  };
}

std::vector<Rule> elementwiseSinks() {
  return {
      {.name = "sink-transpose-unary",
       .doc = "A transpose moves below functions of single elements, but bytes for products of integers move as bytes.",
       .pattern = op(unaryOps(), {transposed()}),
       .condition = [](const Match& m) { return !widensBytes(m.root()); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.transpose(like(b, m.root(), {m[0]}), {.perm = permOf(m.node(1))})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleTransposed(rng, b);
         return rng.flip() ? b.cast(x, {.to = ElemKind::Float64}) : b.leakyRelu(x, {.alpha = 0.2});
       }},
      {.name = "sink-transpose-elementwise",
       .doc = "Transposes of one order, with constants and scalars, move below an elementwise operator.",
       .pattern = op(opsOf(OpKind::Elementwise)),
       .condition =
           [](const Match& m) {
             return m.root().inputCount() > 1 && m.root().op() != Op::Expand && !sharedPerm(m.root()).empty();
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const Ints perm = sharedPerm(m.root());
         std::vector<Value> inputs = m.root().inputs();
         for (Value& v : inputs) v = beforeTranspose(b, v, perm);
         return {b.transpose(like(b, m.root(), inputs), {.perm = perm})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleTransposed(rng, b);
         const Value c = sampling::constant(rng, b, sampling::broadcastable(rng, x.shape()));
         const Value s = sampling::input(b, {});
         if (rng.flip()) return b.clip(x, c, s);
         const Value y = b.transpose(sampling::input(b, x.node->input(0).shape()), {.perm = permOf(*x.node)});
         return rng.flip() ? b.sub(x, y) : b.where(b.constant(Tensor::scalar(ElemKind::Bool, 1)), y, x);
       }},
  };
}

std::vector<Rule> axisSinks() {
  return {
      {.name = "sink-transpose-reduce",
       .doc = "A transpose moves below a reduction.",
       .pattern = op(Op::Reduce, {transposed()}),
       .condition = [](const Match& m) { return !hasScaledAxis(m[0]); },
       .build = [](const Match& m, Builder& b) -> Values {
         const ReduceNode reduce(m.root());
         const Ints& perm = permOf(m.node(1));
         const Ints axes = permuted(perm, reduce.axes());
         const Value y = b.reduced(m[0], reduce.kind(), axes, reduce.keepdims());
         return {b.transposed(y, reduce.keepdims() ? perm : remaining(perm, axes))};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleTransposed(rng, b);
         const Ints axes = rng.pick<Ints>({{0}, {1}, {0, 1}, {}});
         return b.reduced(x, rng.flip() ? "sum" : "max", axes, rng.flip());
       },
       .keeps = Keeps::Rounding},
      {.name = "sink-transpose-softmax",
       .doc = "A transpose moves below a softmax.",
       .pattern = op(opSet({Op::Softmax, Op::LogSoftmax}), {transposed()}),
       .build = [](const Match& m, Builder& b) -> Values {
         const Ints& perm = permOf(m.node(1));
         const int64_t axis = mapped(perm, axisFromFront(m.root().attrs().integer("axis"), m[0].rank()));
         Attrs attrs = m.root().attrs();
         return {b.transpose(b.make({m[0]}, attrs.set("axis", axis))->result(), {.perm = perm})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleTransposed(rng, b);
         return rng.flip() ? b.softmax(x, {.axis = -1}) : b.logSoftmax(x, {.axis = 0});
       },
       .keeps = Keeps::Rounding},
      {.name = "sink-transpose-pad",
       .doc = "A transpose moves below padding.",
       .pattern = op(Op::Pad, {transposed(), any(2)}),
       .build = [](const Match& m, Builder& b) -> Values {
         const PadNode pad(m.root());
         const Ints& perm = permOf(m.node(1));
         const Ints back = inverse(perm);
         const Value y =
             b.pad(m[0], m[2], {.before = permuted(pad.before(), back), .after = permuted(pad.after(), back)});
         return {b.transpose(y, {.perm = perm})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleTransposed(rng, b);
         Ints before(static_cast<size_t>(x.rank())), after = before;
         for (int64_t& n : before) n = rng.between(0, 2);
         for (int64_t& n : after) n = rng.between(0, 2);
         return b.pad(x, b.scalarLike(x, 0.5), {.before = before, .after = after});
       }},
      {.name = "sink-transpose-slice",
       .doc = "A transpose moves below a slice.",
       .pattern = op(Op::Slice, {transposed()}),
       .condition = [](const Match& m) { return !hasScaledAxis(m[0]); },
       .build = [](const Match& m, Builder& b) -> Values {
         const SliceNode slice(m.root());
         const Ints& perm = permOf(m.node(1));
         const Ints back = inverse(perm);
         const Value y = b.slice(m[0], {.starts = permuted(slice.starts(), back),
                                        .sizes = permuted(slice.sizes(), back),
                                        .steps = permuted(filled(slice.steps(), m[0].rank(), 1), back)});
         return {b.transpose(y, {.perm = perm})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleTransposed(rng, b);
         return sampling::slice(rng, b, x);
       }},
      {.name = "sink-transpose-concat",
       .doc = "Transposes of one order move below a concatenation.",
       .pattern = op(Op::Concat),
       .condition =
           [](const Match& m) {
             const std::vector<Value> inputs = m.root().inputs();
             const Node& first = *inputs.front().node;
             return std::all_of(inputs.begin(), inputs.end(), [&](Value v) {
               return v.node->op() == Op::Transpose && !v.node->predicate() && readOnlyBy(v, m.root()) &&
                      permOf(*v.node) == permOf(first) && !hasScaledAxis(v);
             });
           },
       .build = [](const Match& m, Builder& b) -> Values {
         std::vector<Value> inputs = m.root().inputs();
         const Ints perm = permOf(*inputs.front().node);
         for (Value& v : inputs) v = v.node->input(0);
         const Value y = b.concat(inputs, {.axis = mapped(perm, m.root().attrs().integer("axis"))});
         return {b.transpose(y, {.perm = perm})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampleTransposed(rng, b);
         const Value y = b.transpose(sampling::input(b, x.node->input(0).shape()), {.perm = permOf(*x.node)});
         return b.concat({x, y, x}, {.axis = rng.between(0, x.rank() - 1)});
       }},
  };
}

}  // namespace

std::vector<Rule> transposeRules() { return joined({merges(), products(), elementwiseSinks(), axisSinks()}); }

}  // namespace aglow
