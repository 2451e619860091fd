// Affine folding: factors and addends that are constant over a channel move into the weights and the bias of the
// convolution or product before (or after) them. The new weights are expressions of constants, which folding computes.
#include <algorithm>

#include "graph/op_views.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

// Whether changed weights may replace these: a second large copy of shared ones would cost more than it saves.
bool mayChange(Value weights) {
  constexpr int64_t kSmall = 64 << 10;
  return weights.node->uses().size() == 1 || weights.type().bytes() <= kSmall;
}

// The filter of a convolution with its channels of one side in view: [groups, a, b, kernel...] where the axis that
// holds the output's (or input's) channels of a group is 1 or 2.
struct FilterView {
  Ints dims;
  int64_t groups = 1;
  size_t out = 1, in = 2;

  explicit FilterView(const Node& conv) : groups(conv.attrs().integer("group")) {
    const Shape& filter = conv.input(1).shape();
    dims = {groups, filter[0] / groups};
    dims.insert(dims.end(), filter.dims().begin() + 1, filter.dims().end());
    if (conv.op() == Op::ConvTranspose) std::swap(out, in);
  }

  // A vector over all channels of one side, so that it broadcasts to the view.
  Value channelwise(Builder& b, Value vector, size_t axis) const {
    Ints shape(dims.size(), 1);
    shape[0] = groups;
    shape[axis] = dims[axis];
    return b.reshaped(vector, shape);
  }
};

// The filter multiplied (or divided) by a constant along the channels of one side.
Value scaledFilter(Builder& b, const Node& conv, Op op, Value constant, bool outputs) {
  const FilterView view(conv);
  const size_t axis = outputs ? view.out : view.in;
  const Value vector = asVector(b, constant, view.groups * view.dims[axis]);
  const Value filter = b.reshaped(conv.input(1), view.dims);
  const Value scaled = b.make({filter, view.channelwise(b, vector, axis)}, Attrs(opDef(op)))->result();
  return b.reshaped(scaled, conv.input(1).shape().dims());
}

OpSet convolutions() { return opSet({Op::Conv, Op::ConvTranspose}); }

bool isChannelwise(const Match& m, int constant) {
  return mayChange(m[1]) && isAlong(m[constant].shape(), m.result().shape(), 1) && m.result().shape() == m[2].shape();
}

Values scaleConv(const Match& m, Builder& b) {
  const Node& conv = m.node(2);
  const Op op = m.root().op();
  Value bias = conv.input(2);
  if (bias) bias = b.make({bias, asVector(b, m[3], bias.dim(0))}, Attrs(opDef(op)))->result();
  return {like(b, conv, {m[0], scaledFilter(b, conv, op, m[3], true), bias})};
}

struct ConvSample {
  Value y;
  int64_t channels = 0;
};

ConvSample sampleConv(Rng& rng, Builder& b, Value x = {}) {
  const int64_t groups = rng.between(1, 2), out = groups * rng.between(1, 2);
  if (!x) x = sampling::input(b, {1, 4, 3, 4});
  const bool bias = rng.flip();
  if (rng.flip())
    return {b.conv(x, sampling::constant(rng, b, {out, 4 / groups, 2, 3}),
                   bias ? sampling::constant(rng, b, {out}) : Value{}, {.pads = {1, 0, 0, 1}, .group = groups}),
            out};
  return {b.convTranspose(x, sampling::constant(rng, b, {4, out / groups, 2, 3}),
                          bias ? sampling::constant(rng, b, {out}) : Value{}, {.strides = {2, 1}, .group = groups}),
          out};
}

Value sampleChannelwise(Rng& rng, Builder& b, int64_t channels) {
  return sampling::constant(rng, b, rng.pick<Shape>({{}, {channels, 1, 1}, {1, channels, 1, 1}, {1}}),
                            ElemKind::Float32, 0.5, 2);
}

std::vector<Rule> convRules() {
  return {
      {.name = "batch-norm-affine",
       .doc = "A batch normalisation with constant statistics is a product and a sum for each channel.",
       .kinds = kReals,
       .pattern = op(Op::BatchNorm, {any(0), constant(1), constant(2), constant(3), constant(4)}),
       .condition =
           [](const Match& m) {
             const std::vector<Value> inputs = m.root().inputs();
             return std::all_of(inputs.begin(), inputs.end(), [&](Value v) { return v.kind() == m[0].kind(); });
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const BatchNormNode norm(m.root());
         const Value deviation = b.sqrt(b.add(m[4], b.scalarLike(m[4], norm.epsilon())));
         const Value scale = b.div(m[1], deviation), offset = b.sub(m[2], b.mul(m[3], scale));
         Ints shape(static_cast<size_t>(m[0].rank()) - 1, 1);
         shape.front() = m[0].dim(1);
         return {b.add(b.mul(m[0], b.reshaped(scale, shape)), b.reshaped(offset, shape))};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, sampling::shape(rng, 2, 4), sampling::floatKind(rng));
         const auto one = [&](double low) { return sampling::constant(rng, b, {x.dim(1)}, x.kind(), low, 2); };
         return b.batchNorm(x, one(-2), one(-2), one(-2), one(0.1), {.epsilon = 1e-3});
       },
       .keeps = Keeps::Rounding},
      {.name = "conv-scale",
       .doc = "A factor for each channel after a convolution moves into its filter and bias. Relaxed: overflow before "
              "the factor.",
       .kinds = kReals,
       .pattern = op(opSet({Op::Mul, Op::Div}), {op(convolutions(), {any(0), constant(1)}).once().as(2), constant(3)}),
       .condition = [](const Match& m) { return isChannelwise(m, 3); },
       .build = scaleConv,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const ConvSample conv = sampleConv(rng, b);
         const Value c = sampleChannelwise(rng, b, conv.channels);
         return rng.flip() ? b.div(conv.y, c) : sampling::either(rng, b, Op::Mul, conv.y, c);
       },
       .keeps = Keeps::Finite},
      {.name = "conv-bias",
       .doc = "A sum with a constant for each channel after a convolution is its bias.",
       .kinds = kReals,
       .pattern = op(Op::Add, {op(convolutions(), {any(0), any(1)}).once().as(2), constant(3)}),
       .condition =
           [](const Match& m) {
             return isAlong(m[3].shape(), m.result().shape(), 1) && m.result().shape() == m[2].shape();
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const Value own = m.node(2).input(2), more = asVector(b, m[3], m.result().dim(1));
         return {like(b, m.node(2), {m[0], m[1], own ? b.add(own, more) : more})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const ConvSample conv = sampleConv(rng, b);
         return sampling::either(rng, b, Op::Add, conv.y, sampleChannelwise(rng, b, conv.channels));
       },
       .keeps = Keeps::Rounding},
      {.name = "scale-conv",
       .doc = "A factor for each channel before a convolution moves into its filter. Relaxed: overflow after the "
              "factor.",
       .kinds = kReals,
       .pattern = op(convolutions(), {op(opSet({Op::Mul, Op::Div}), {any(0), constant(3)}).once().as(4), constant(1)}),
       .condition =
           [](const Match& m) {
             return mayChange(m[1]) && m[0].shape() == m[4].shape() && isAlong(m[3].shape(), m[0].shape(), 1);
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const Value filter = scaledFilter(b, m.root(), m.node(4).op(), m[3], false);
         return {like(b, m.root(), {m[0], filter, m.root().input(2)})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {1, 4, 3, 4});
         const Value c = sampleChannelwise(rng, b, 4);
         return sampleConv(rng, b, rng.flip() ? b.div(x, c) : sampling::either(rng, b, Op::Mul, x, c)).y;
       },
       .keeps = Keeps::Finite},
  };
}

// A constant along the last axis of a product, as it stands to the product's right side.
bool isColumnwise(const Match& m, Value constant, Value product) {
  return mayChange(m[1]) && isAlong(constant.shape(), product.shape(), product.rank() - 1);
}

Value sampleProduct(Rng& rng, Builder& b, Value x) {
  const int64_t depth = x.dim(x.rank() - 1);
  return b.matMul(x, sampling::constant(rng, b, rng.flip() ? Shape{depth, 3} : Shape{2, depth, 3}));
}

Value sampleColumnwise(Rng& rng, Builder& b, int64_t count) {
  return sampling::constant(rng, b, rng.pick<Shape>({{}, {count}, {1, count}}), ElemKind::Float32, 0.5, 2);
}

std::vector<Rule> productRules() {
  return {
      {.name = "matmul-scale",
       .doc = "A factor for each column after a matrix product moves into its weights. Relaxed: overflow before the "
              "factor.",
       .kinds = kReals,
       .pattern = op(opSet({Op::Mul, Op::Div}), {op(Op::MatMul, {any(0), constant(1)}).once().as(2), constant(3)}),
       .condition = [](const Match& m) { return isColumnwise(m, m[3], m[2]); },
       .build = [](const Match& m, Builder& b) -> Values {
         const Value c = asVector(b, m[3], m[1].dim(m[1].rank() - 1));
         return {b.matMul(m[0], b.make({m[1], c}, Attrs(opDef(m.root().op())))->result())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value y = sampleProduct(rng, b, sampling::input(b, {2, 4}));
         return rng.flip() ? b.div(y, sampleColumnwise(rng, b, 3))
                           : sampling::either(rng, b, Op::Mul, y, sampleColumnwise(rng, b, 3));
       },
       .keeps = Keeps::Finite},
      {.name = "matmul-bias-scale",
       .doc = "The same through a bias. Relaxed: overflow before the factor.",
       .kinds = kReals,
       .pattern =
           op(opSet({Op::Mul, Op::Div}),
              {op(Op::Add, {op(Op::MatMul, {any(0), constant(1)}).once().as(2), constant(4)}).once(), constant(3)}),
       .condition =
           [](const Match& m) {
             return isColumnwise(m, m[3], m[2]) && isAlong(m[4].shape(), m[2].shape(), m[2].rank() - 1);
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const auto scaled = [&](Value v) {
           const Value c = asVector(b, m[3], m[1].dim(m[1].rank() - 1));
           return b.make({v, c}, Attrs(opDef(m.root().op())))->result();
         };
         return {b.add(b.matMul(m[0], scaled(m[1])), scaled(m[4]))};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value y = sampleProduct(rng, b, sampling::input(b, {2, 4}));
         const Value biased = sampling::either(rng, b, Op::Add, y, sampleColumnwise(rng, b, 3));
         return rng.flip() ? b.div(biased, sampleColumnwise(rng, b, 3)) : b.mul(biased, sampleColumnwise(rng, b, 3));
       },
       .keeps = Keeps::Finite},
      {.name = "scale-matmul",
       .doc = "A factor for each row of the weights, before a matrix product, moves into them. Relaxed: overflow after "
              "the factor.",
       .kinds = kReals,
       .pattern = op(Op::MatMul, {op(opSet({Op::Mul, Op::Div}), {any(0), constant(3)}).once().as(2), constant(1)}),
       .condition = [](const Match& m) { return m[0].shape() == m[2].shape() && isColumnwise(m, m[3], m[2]); },
       .build = [](const Match& m, Builder& b) -> Values {
         const int64_t depth = m[0].dim(m[0].rank() - 1);
         const Value column = b.reshaped(asVector(b, m[3], depth), {depth, 1});
         return {b.matMul(m[0], like(b, m.node(2), {m[1], column}))};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::input(b, {2, 4});
         const Value c = sampleColumnwise(rng, b, 4);
         return sampleProduct(rng, b, rng.flip() ? b.div(x, c) : sampling::either(rng, b, Op::Mul, x, c));
       },
       .keeps = Keeps::Finite},
  };
}

}  // namespace

std::vector<Rule> affineRules() { return joined({convRules(), productRules()}); }

}  // namespace aglow
