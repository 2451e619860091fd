// Reductions: one instead of two, none over axes of extent 1, means instead of sums with a factor.
#include <algorithm>

#include "graph/op_views.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

// How many elements a reduction makes one of.
double reducedCount(const Node& node) {
  return static_cast<double>(node.input(0).type().elements()) / static_cast<double>(node.type().elements());
}

bool hasElements(Value v) { return v.type().elements() > 0; }

// The axes of x that two reductions reduce together.
Ints bothAxes(const ReduceNode& inner, const ReduceNode& outer) {
  Ints axes = inner.axes(), left;
  for (int64_t axis = 0; axis < inner.x().rank(); ++axis) {
    const bool gone = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!gone || inner.keepdims()) left.push_back(axis);
  }
  for (const int64_t axis : outer.axes()) axes.push_back(left[static_cast<size_t>(axis)]);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

bool dropsAxes(const ReduceNode& reduce, Ints& axes) {
  axes = reduce.axes();
  std::erase_if(axes, [&](int64_t axis) { return reduce.x().dim(static_cast<int>(axis)) == 1; });
  return axes.size() < reduce.axes().size() || axes.empty();
}

Value sampleReduce(Rng& rng, Builder& b, Value x, std::string_view kind, bool keep) {
  Ints axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (rng.flip()) axes.push_back(axis);
  return b.reduced(x, kind, axes, keep);
}

}  // namespace

std::vector<Rule> reduceRules() {
  return {
      {.name = "reduce-ones",
       .doc = "Axes of extent 1 need no reduction, only another shape.",
       .pattern = op(Op::Reduce, {any(0)}),
       .condition =
           [](const Match& m) {
             Ints axes;
             return hasElements(m[0]) && !hasScaledAxis(m[0]) && dropsAxes(ReduceNode(m.root()), axes);
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const ReduceNode reduce(m.root());
         Ints axes;
         dropsAxes(reduce, axes);
         const Value y = axes.empty() ? m[0] : b.reduced(m[0], reduce.kind(), axes);
         return {b.reshaped(y, m.result().shape().dims())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {rng.between(2, 4), 1, rng.between(2, 4)});
         const Ints axes = rng.pick<Ints>({{1}, {1, 2}, {}});
         return b.reduced(x, rng.pick<std::string_view>({"sum", "mean", "prod", "max", "min"}), axes, rng.flip());
       },
       .keeps = Keeps::Rounding},
      {.name = "reduce-reduce",
       .doc = "Two reductions of one kind are one. Relaxed: sums and products that overflow on the way.",
       .pattern = op(Op::Reduce, {op(Op::Reduce, {any(0)}).once().as(1)}),
       .condition =
           [](const Match& m) {
             return m.attrs(1).word("kind") == m.root().attrs().word("kind") && hasElements(m[0]) &&
                    !hasScaledAxis(m[0]);
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const ReduceNode inner(m.node(1)), outer(m.root());
         const Value y = b.reduced(m[0], outer.kind(), bothAxes(inner, outer));
         return {b.reshaped(y, m.result().shape().dims())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const auto kind = rng.pick<std::string_view>({"sum", "mean", "prod", "max", "min"});
         const Value x = sampling::input(b, sampling::shape(rng, 2, 4), sampling::floatKind(rng));
         return sampleReduce(rng, b, sampleReduce(rng, b, x, kind, rng.flip()), kind, rng.flip());
       },
       .keeps = Keeps::Finite},
      {.name = "reduce-reshape",
       .doc = "A reshape that only drops or adds the reduced axes is the reduction's own matter.",
       .pattern = op(Op::Reshape, {op(Op::Reduce, {any(0)}).once().as(1)}),
       .condition = [](const Match& m) { return !hasScaledAxis(m[0]); },
       .build = [](const Match& m, Builder& b) -> Values {
         const ReduceNode reduce(m.node(1));
         const Value other = b.reduced(m[0], reduce.kind(), reduce.axes(), !reduce.keepdims());
         return other.shape() == m.result().shape() ? Values{other} : Values{};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {2, 3, 4});
         const bool keep = rng.flip();
         const Value y = b.reduced(x, "max", {1}, keep);
         return b.reshape(y, {.shape = keep ? Ints{2, 4} : Ints{2, 1, 4}});
       }},
      {.name = "sum-as-mean",
       .doc = "A sum divided by the number of its elements is a mean.",
       .kinds = kReals,
       .pattern = op(opSet({Op::Div, Op::Mul}), {op(Op::Reduce, {any(0)}).once().as(1), number(2)}),
       .condition =
           [](const Match& m) {
             if (m.attrs(1).word("kind") != "sum" || !hasElements(m.result())) return false;
             const double count = reducedCount(m.node(1));
             const double factor = m.root().op() == Op::Div ? count : 1 / count;
             return count > 0 && nearlyEqual(m[0].kind(), m.number(2), factor);
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const ReduceNode reduce(m.node(1));
         const Value mean = b.reduced(m[0], "mean", reduce.axes(), reduce.keepdims());
         return {expanded(b, mean, m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, sampling::shape(rng, 1, 3));
         const Value sum = sampleReduce(rng, b, x, "sum", rng.flip());
         const double count = reducedCount(*sum.node);
         if (rng.flip()) return b.div(sum, b.scalarLike(x, count));
         return sampling::either(rng, b, Op::Mul, sum, b.scalarLike(x, 1 / count));
       },
       .keeps = Keeps::Rounding},
  };
}

}  // namespace aglow
