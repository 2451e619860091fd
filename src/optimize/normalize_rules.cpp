// Softmax and the normalisations found again in the reductions and arithmetic that exporters write them as. The core of
// a normalisation is found first, with a scale of 1; scale and bias join it one by one.
#include <algorithm>

#include "graph/op_views.h"
#include "ops/axes.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

bool isReduce(const Match& m, int capture, std::string_view kind) {
  return m.attrs(capture).word("kind") == kind && m.attrs(capture).flag("keepdims");
}

// The only axis that a captured reduction reduces, or -1.
int64_t onlyAxis(const Match& m, int capture) {
  const Ints& axes = m.attrs(capture).ints("axes");
  return axes.size() == 1 ? axes.front() : -1;
}

// Whether a captured mean goes over all axes from one on.
bool isTrailingMean(const Match& m, int capture) {
  const Ints& axes = m.attrs(capture).ints("axes");
  if (!isReduce(m, capture, "mean") || axes.empty()) return false;
  const int rank = m.node(capture).input(0).rank();
  return axes.front() + static_cast<int64_t>(axes.size()) == rank;
}

std::vector<Rule> softmaxes() {
  return {
      {.name = "softmax",
       .doc = "exp(x - max(x)) divided by its sum is Softmax.",
       .kinds = kReals,
       .pattern = op(Op::Div, {op(Op::Exp, {op(Op::Sub, {any(0), op(Op::Reduce, {any(0)}).as(1)})}).as(2),
                               op(Op::Reduce, {any(2)}).as(3)}),
       .condition =
           [](const Match& m) {
             return isReduce(m, 1, "max") && isReduce(m, 3, "sum") && onlyAxis(m, 1) >= 0 &&
                    onlyAxis(m, 1) == onlyAxis(m, 3);
           },
       .build = [](const Match& m, Builder& b) -> Values { return {b.softmax(m[0], {.axis = onlyAxis(m, 1)})}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, sampling::shape(rng, 1, 4), sampling::floatKind(rng));
         const int64_t axis = rng.between(0, x.rank() - 1);
         const Value e = b.exp(b.sub(x, b.reduced(x, "max", {axis})));
         return b.div(e, b.reduced(e, "sum", {axis}));
       },
       .keeps = Keeps::Rounding},
      {.name = "softmax-plain",
       .doc = "exp(x) divided by its sum is Softmax. Relaxed: exp(x) no longer overflows.",
       .kinds = kReals,
       .pattern = op(Op::Div, {op(Op::Exp, {any(0)}).as(2), op(Op::Reduce, {any(2)}).as(3)}),
       .condition = [](const Match& m) { return isReduce(m, 3, "sum") && onlyAxis(m, 3) >= 0; },
       .build = [](const Match& m, Builder& b) -> Values { return {b.softmax(m[0], {.axis = onlyAxis(m, 3)})}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value e = b.exp(sampling::input(b, sampling::shape(rng, 1, 4)));
         return b.div(e, b.reduced(e, "sum", {rng.between(0, e.rank() - 1)}));
       },
       .keeps = Keeps::Finite},
      {.name = "log-softmax",
       .doc = "The logarithm of a Softmax is LogSoftmax. Relaxed: small probabilities no longer vanish first.",
       .kinds = kReals,
       .pattern = op(Op::Log, {op(Op::Softmax, {any(0)}).once().as(1)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.logSoftmax(m[0], {.axis = m.attrs(1).integer("axis")})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, sampling::shape(rng, 1, 4));
         return b.log(b.softmax(x, {.axis = rng.between(-x.rank(), x.rank() - 1)}));
       },
       .keeps = Keeps::Finite},
  };
}

// x - mean(x) as 2, with x as 0 and the mean as 1.
Pattern centred() { return op(Op::Sub, {any(0), op(Op::Reduce, {any(0)}).as(1)}).as(2); }
// The mean of the squares of a captured value, as 3.
Pattern meanSquare(int capture) {
  return op(Op::Reduce, {either({op(Op::Mul, {any(capture), any(capture)}), op(Op::Pow, {any(capture), literal(2)})})})
      .as(3);
}
// sqrt(variance + epsilon) and its reciprocal, in the ways they are written; epsilon as 4.
Pattern root(const Pattern& variance) {
  const Pattern sum = op(Op::Add, {variance, number(4)});
  return either({op(Op::Sqrt, {sum}), op(Op::Pow, {sum, literal(0.5)})});
}
Pattern inverseRoot(const Pattern& variance) {
  const Pattern sum = op(Op::Add, {variance, number(4)});
  return either({op(Op::Reciprocal, {op(Op::Sqrt, {sum})}), op(Op::Pow, {sum, literal(-0.5)})});
}

bool isCentred(const Match& m) {
  return isTrailingMean(m, 1) && isTrailingMean(m, 3) && m.attrs(1) == m.attrs(3) && m.number(4) > 0;
}

Values layerNormCore(const Match& m, Builder& b) {
  return {
      b.layerNorm(m[0], b.scalarLike(m[0], 1), {}, {.axis = m.attrs(1).ints("axes").front(), .epsilon = m.number(4)})
          ->result()};
}

// Whether a value has extents only along the axes that a normalisation works on, so that it is a scale or bias.
bool isParameter(const Match& m, Value v) {
  const int64_t axis = axisFromFront(m.attrs(2).integer("axis"), m[0].rank());
  if (v.kind() != m[0].kind() || !stretchesTo(v.shape(), m[0].shape())) return false;
  const int64_t missing = m[0].rank() - v.rank();
  for (int64_t i = 0; i < v.rank(); ++i)
    if (i + missing < axis && v.dim(static_cast<int>(i)) != 1) return false;
  return true;
}

struct NormSample {
  Value x;
  std::vector<int64_t> axes;
};

NormSample sampleNorm(Rng& rng, Builder& b) {
  const Value x = sampling::input(b, sampling::shape(rng, 2, 3), sampling::floatKind(rng));
  std::vector<int64_t> axes{x.rank() - 1};
  if (rng.flip()) axes.insert(axes.begin(), x.rank() - 2);
  return {x, axes};
}

Value sampleSquare(Rng& rng, Builder& b, Value v) { return rng.flip() ? b.mul(v, v) : b.pow(v, b.scalarLike(v, 2)); }

Value sampleRoot(Rng& rng, Builder& b, Op op, Value x, Value square) {
  const Value sum = sampling::either(rng, b, Op::Add, square, b.scalarLike(x, 1e-3));
  if (op == Op::Div) return b.div(x, rng.flip() ? b.sqrt(sum) : b.pow(sum, b.scalarLike(x, 0.5)));
  return sampling::either(rng, b, Op::Mul, x,
                          rng.flip() ? b.reciprocal(b.sqrt(sum)) : b.pow(sum, b.scalarLike(x, -0.5)));
}

Value sampleLayerNorm(Rng& rng, Builder& b, Op op) {
  const NormSample s = sampleNorm(rng, b);
  const Value d = b.sub(s.x, b.reduced(s.x, "mean", s.axes));
  return sampleRoot(rng, b, op, d, b.reduced(sampleSquare(rng, b, d), "mean", s.axes));
}

Value sampleRmsNorm(Rng& rng, Builder& b, Op op) {
  const NormSample s = sampleNorm(rng, b);
  return sampleRoot(rng, b, op, s.x, b.reduced(sampleSquare(rng, b, s.x), "mean", s.axes));
}

std::vector<Rule> layerNorms() {
  return {
      {.name = "layer-norm",
       .doc =
           "(x - mean) / sqrt(variance + epsilon) over trailing axes is LayerNorm. Relaxed: overflow of the squares.",
       .kinds = kReals,
       .pattern = op(Op::Div, {centred(), root(meanSquare(2))}),
       .condition = isCentred,
       .build = layerNormCore,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleLayerNorm(rng, b, Op::Div); },
       .keeps = Keeps::Finite},
      {.name = "layer-norm-reciprocal",
       .doc = "The same, multiplied by the reciprocal of the root. Relaxed: overflow of the squares.",
       .kinds = kReals,
       .pattern = op(Op::Mul, {centred(), inverseRoot(meanSquare(2))}),
       .condition = isCentred,
       .build = layerNormCore,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleLayerNorm(rng, b, Op::Mul); },
       .keeps = Keeps::Finite},
      {.name = "layer-norm-folded",
       .doc =
           "x * r + (bias - mean * r), with r = scale / sqrt(variance + epsilon), is LayerNorm. Relaxed: overflow of "
           "the single products.",
       .kinds = kReals,
       .pattern = op(Op::Add, {op(Op::Mul, {any(0), op(Op::Mul, {inverseRoot(meanSquare(2)), any(5)}).as(6)}),
                               op(Op::Sub, {any(7), op(Op::Mul, {op(Op::Reduce, {any(0)}).as(1), any(6)})})}),
       .condition =
           [](const Match& m) {
             const Node& centre = m.node(2);
             if (centre.op() != Op::Sub || centre.input(0) != m[0] || centre.input(1) != m[1] || !isCentred(m))
               return false;
             const auto fits = [&](Value v) {
               const int64_t axis = m.attrs(1).ints("axes").front();
               return v.rank() <= m[0].rank() - axis && stretchesTo(v.shape(), m[0].shape());
             };
             return fits(m[5]) && fits(m[7]);
           },
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.layerNorm(m[0], m[5], m[7], {.axis = m.attrs(1).ints("axes").front(), .epsilon = m.number(4)})
                     ->result()};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const NormSample s = sampleNorm(rng, b);
         const Value mean = b.reduced(s.x, "mean", s.axes), d = b.sub(s.x, mean);
         const Value sum = b.add(b.reduced(sampleSquare(rng, b, d), "mean", s.axes), b.scalarLike(s.x, 1e-3));
         const Value root = rng.flip() ? b.reciprocal(b.sqrt(sum)) : b.pow(sum, b.scalarLike(sum, -0.5));
         const Shape last{s.x.dim(s.x.rank() - 1)};
         const Value r = b.mul(root, sampling::constant(rng, b, last, s.x.kind()));
         return b.add(b.mul(s.x, r), b.sub(sampling::constant(rng, b, last, s.x.kind()), b.mul(mean, r)));
       },
       .keeps = Keeps::Finite},
      {.name = "layer-norm-scale",
       .doc = "A factor after a LayerNorm without one is its scale.",
       .kinds = kReals,
       .pattern = op(Op::Mul, {op(Op::LayerNorm, {any(0), literal(1), absent()}).once().as(2), any(3)}),
       .condition = [](const Match& m) { return isParameter(m, m[3]); },
       .build = [](const Match& m, Builder& b) -> Values { return {like(b, m.node(2), {m[0], m[3]})}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, sampling::shape(rng, 2, 3));
         const Value y = b.layerNorm(x, b.scalarLike(x, 1), {}, {.axis = -1})->result();
         return sampling::either(rng, b, Op::Mul, y, sampling::input(b, {x.dim(x.rank() - 1)}));
       },
       .keeps = Keeps::Rounding},
      {.name = "layer-norm-bias",
       .doc = "A sum after a LayerNorm without bias is its bias.",
       .kinds = kReals,
       .pattern = op(Op::Add, {op(Op::LayerNorm, {any(0), any(1), absent()}).once().as(2), any(3)}),
       .condition = [](const Match& m) { return isParameter(m, m[3]); },
       .build = [](const Match& m, Builder& b) -> Values { return {like(b, m.node(2), {m[0], m[1], m[3]})}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, sampling::shape(rng, 2, 3));
         const Shape last{x.dim(x.rank() - 1)};
         const Value y = b.layerNorm(x, sampling::input(b, last), {}, {.axis = x.rank() - 1})->result();
         return sampling::either(rng, b, Op::Add, y, sampling::input(b, last));
       },
       .keeps = Keeps::Rounding},
  };
}

bool isRmsNorm(const Match& m) { return isTrailingMean(m, 3) && m.number(4) > 0; }

Values rmsNormCore(const Match& m, Builder& b) {
  return {b.rmsNorm(m[0], b.scalarLike(m[0], 1), {.axis = m.attrs(3).ints("axes").front(), .epsilon = m.number(4)})};
}

std::vector<Rule> rmsNorms() {
  return {
      {.name = "rms-norm",
       .doc = "x / sqrt(mean(x * x) + epsilon) over trailing axes is RMSNorm. Relaxed: overflow of the squares.",
       .kinds = kReals,
       .pattern = op(Op::Div, {any(0), root(meanSquare(0))}),
       .condition = isRmsNorm,
       .build = rmsNormCore,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleRmsNorm(rng, b, Op::Div); },
       .keeps = Keeps::Finite},
      {.name = "rms-norm-reciprocal",
       .doc = "The same, multiplied by the reciprocal of the root. Relaxed: overflow of the squares.",
       .kinds = kReals,
       .pattern = op(Op::Mul, {any(0), inverseRoot(meanSquare(0))}),
       .condition = isRmsNorm,
       .build = rmsNormCore,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleRmsNorm(rng, b, Op::Mul); },
       .keeps = Keeps::Finite},
      {.name = "rms-norm-scale",
       .doc = "A factor after an RMSNorm without one is its scale.",
       .kinds = kReals,
       .pattern = op(Op::Mul, {op(Op::RMSNorm, {any(0), literal(1)}).once().as(2), any(3)}),
       .condition = [](const Match& m) { return isParameter(m, m[3]); },
       .build = [](const Match& m, Builder& b) -> Values { return {like(b, m.node(2), {m[0], m[3]})}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, sampling::shape(rng, 2, 3));
         const Value y = b.rmsNorm(x, b.scalarLike(x, 1), {.axis = -1});
         return sampling::either(rng, b, Op::Mul, y, sampling::input(b, {x.dim(x.rank() - 1)}));
       },
       .keeps = Keeps::Rounding},
  };
}

// Both have scale and bias for each channel.
OpSet channelNorms() { return opSet({Op::InstanceNorm, Op::GroupNorm}); }

Value sampleChannelNorm(Rng& rng, Builder& b, Value x, Value scale, Value bias) {
  if (rng.flip()) return b.instanceNorm(x, scale, bias);
  return b.groupNorm(x, scale, bias, {.groups = 2});
}

std::vector<Rule> channelNormRules() {
  return {
      {.name = "group-norm",
       .doc = "An InstanceNorm of groups of channels, seen as channels, is GroupNorm.",
       .kinds = kReals,
       .pattern = op(Op::Reshape,
                     {op(Op::InstanceNorm, {op(Op::Reshape, {any(0)}).as(1), literal(1), literal(0)}).once().as(2)}),
       .condition =
           [](const Match& m) {
             return m[0].shape() == m.result().shape() && m[0].rank() >= 2 && m[1].dim(0) == m[0].dim(0) &&
                    m[1].dim(1) > 0 && m[0].dim(1) % m[1].dim(1) == 0;
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const Type channels(m[0].kind(), {m[0].dim(1)});
         return {b.groupNorm(m[0], splat(b, channels, 1), splat(b, channels, 0),
                             {.groups = m[1].dim(1), .epsilon = m.attrs(2).real("epsilon")})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {2, 4, rng.between(1, 3), 2});
         const int64_t groups = rng.pick<int64_t>({1, 2, 4});
         const Value seen = b.reshape(x, {.shape = {2, groups, x.type().elements() / 2 / groups}});
         const auto all = [&](double v) { return b.splat({.value = v, .shape = {groups}}); };
         return b.reshape(b.instanceNorm(seen, all(1), all(0), {.epsilon = 1e-3}), {.shape = x.shape().dims()});
       },
       .keeps = Keeps::Rounding},
      {.name = "channel-norm-scale",
       .doc = "A factor for each channel after an InstanceNorm or GroupNorm without scale and bias is its scale.",
       .kinds = kReals,
       .pattern = op(Op::Mul, {op(channelNorms(), {any(0), literal(1), literal(0)}).once().as(2), any(3)}),
       .condition = [](const Match& m) { return isAlong(m[3].shape(), m[0].shape(), 1); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {like(b, m.node(2), {m[0], asVector(b, m[3], m[0].dim(1)), m.node(2).input(2)})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {2, 4, 3}), one = b.splat({.value = 1, .shape = {4}});
         const Value y = sampleChannelNorm(rng, b, x, one, b.splat({.shape = {4}}));
         return sampling::either(rng, b, Op::Mul, y, sampling::input(b, rng.flip() ? Shape{4, 1} : Shape{1, 4, 1}));
       },
       .keeps = Keeps::Rounding},
      {.name = "channel-norm-bias",
       .doc = "A sum with a value for each channel after an InstanceNorm or GroupNorm without bias is its bias.",
       .kinds = kReals,
       .pattern = op(Op::Add, {op(channelNorms(), {any(0), any(1), literal(0)}).once().as(2), any(3)}),
       .condition = [](const Match& m) { return isAlong(m[3].shape(), m[0].shape(), 1); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {like(b, m.node(2), {m[0], m[1], asVector(b, m[3], m[0].dim(1))})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {2, 4, 3});
         const Value y = sampleChannelNorm(rng, b, x, sampling::input(b, {4}), b.splat({.shape = {4}}));
         return sampling::either(rng, b, Op::Add, y, sampling::input(b, rng.flip() ? Shape{} : Shape{1, 4, 1}));
       },
       .keeps = Keeps::Rounding},
  };
}

}  // namespace

std::vector<Rule> normalizeRules() { return joined({softmaxes(), layerNorms(), rmsNorms(), channelNormRules()}); }

}  // namespace aglow
