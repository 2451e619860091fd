// Elementwise operators with parameters: activations, and formulas over several operands.
#include <fmt/format.h>

#include <limits>

#include "import/caffe2/args.h"
#include "import/caffe2/op_tables.h"

namespace aglow::caffe2 {

namespace {

void leakyRelu(OpImport& c) { c.out(c.b.leakyRelu(c.in(0), {.alpha = realArg(c, "alpha", 0.01)})); }
void elu(OpImport& c) { c.out(c.b.elu(c.in(0), {.alpha = realArg(c, "alpha", 1)})); }
void selu(OpImport& c) {
  c.out(c.b.selu(c.in(0), {.alpha = realArg(c, "alpha", 1.6732632423543772848170429916717),
                           .gamma = realArg(c, "scale", 1.0507009873554804934193349852946)}));
}
void thresholdedRelu(OpImport& c) { c.out(c.b.thresholdedRelu(c.in(0), {.alpha = realArg(c, "alpha", 1)})); }
void hardSigmoid(OpImport& c) {
  c.out(c.b.hardSigmoid(c.in(0), {.alpha = realArg(c, "alpha", 0.2), .beta = realArg(c, "beta", 0.5)}));
}
void swish(OpImport& c) { c.out(c.b.swish(c.in(0))); }
void gelu(OpImport& c) { c.out(flag(c, "fast_gelu") ? c.b.geluTanh(c.in(0)) : c.b.gelu(c.in(0))); }

// One slope, or one a channel.
void pRelu(OpImport& c) {
  const Value x = c.in(0), slope = c.in(1);
  if (slope.type().elements() == 1) return c.out(c.b.pRelu(x, c.b.reshaped(slope, {})));
  const int axis = channelsLast(c) ? x.rank() - 1 : 1;
  if (x.rank() < 2 || slope.type().elements() != x.dim(axis))
    fail(Code::BadNode,
         fmt::format("expected one slope for each channel of {}, got {}", x.type().text(), slope.type().text()));
  c.out(c.b.pRelu(x, onnx::alongAxis(c.b, slope, axis, x.rank())));
}

Value held(Builder& b, Value x, double low, double high) {
  return b.clip(x, b.scalarLike(x, low), b.scalarLike(x, high));
}

void clip(OpImport& c) {
  constexpr double kMost = std::numeric_limits<float>::max();
  c.out(held(c.b, c.in(0), realArg(c, "min", -kMost), realArg(c, "max", kMost)));
}
void reluN(OpImport& c) { c.out(held(c.b, c.in(0), 0, realArg(c, "n", 6))); }

void square(OpImport& c) { c.out(c.b.mul(c.in(0), c.in(0))); }
void cube(OpImport& c) { c.out(c.b.mul(c.in(0), c.b.mul(c.in(0), c.in(0)))); }
void rsqrt(OpImport& c) { c.out(c.b.reciprocal(c.b.sqrt(c.in(0)))); }
void cubeRoot(OpImport& c) {
  const Value x = c.in(0);
  c.out(c.b.mul(c.b.sign(x), c.b.pow(c.b.abs(x), c.b.scalarLike(x, 1.0 / 3))));
}

// Small numbers would vanish next to the 1; the inverse hyperbolic tangent keeps them.
void log1p(OpImport& c) {
  const Value x = c.in(0), one = c.b.scalarLike(x, 1), two = c.b.scalarLike(x, 2);
  const Value near = c.b.mul(two, c.b.atanh(c.b.div(x, c.b.add(x, two))));
  c.out(c.b.where(c.b.less(c.b.abs(x), one), near, c.b.log(c.b.add(x, one))));
}

void scale(OpImport& c) { c.out(c.b.mul(c.in(0), c.b.scalarLike(c.in(0), realArg(c, "scale", 1)))); }

void logit(OpImport& c) {
  const double epsilon = realArg(c, "eps", 1e-6);
  const Value x = held(c.b, c.in(0), epsilon, 1 - epsilon);
  c.out(c.b.log(c.b.div(x, c.b.sub(c.b.scalarLike(x, 1), x))));
}

void replaceNan(OpImport& c) {
  const Value x = c.in(0);
  c.out(c.b.where(c.b.isNan(x), c.b.scalarLike(x, realArg(c, "value", 0)), x));
}

// A value for each element of the axes from an axis on, so that it broadcasts against them.
Value overLastAxes(const OpImport& c, Value x, Value v, int64_t axis) {
  if (v.type().elements() != product(x.shape(), axis, x.rank()))
    fail(Code::BadNode, fmt::format("expected one value for each element of {} from axis {} on, got {}",
                                    x.type().text(), axis, v.type().text()));
  return c.b.reshaped(v, {x.shape().dims().begin() + axis, x.shape().dims().end()});
}

void elementwiseLinear(OpImport& c) {
  const Value x = c.in(0);
  const int64_t axis = c.axis(intArg(c, "axis", 1), x.rank());
  c.out(c.b.add(c.b.mul(x, overLastAxes(c, x, c.in(1), axis)), overLastAxes(c, x, c.in(2), axis)));
}

void batchBoxCox(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  if (x.rank() < 1) fail(Code::BadNode, fmt::format("expected rows of data, got {}", x.type().text()));
  const Value power = overLastAxes(c, x, c.in(1), 1), shift = overLastAxes(c, x, c.in(2), 1);
  const Value zero = b.scalarLike(x, 0), one = b.scalarLike(x, 1);
  const Value positive = b.max(b.add(x, shift), b.scalarLike(x, 1e-6));
  const Value isLog = b.equal(power, zero), divisor = b.where(isLog, one, power);
  c.out(b.where(isLog, b.log(positive), b.div(b.sub(b.pow(positive, power), one), divisor)));
}

// How many boundaries lie below an element.
void bucketize(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const std::vector<double> boundaries = realsArg(c, "boundaries");
  if (boundaries.empty()) fail(Code::BadNode, "expected at least one number in argument 'boundaries'");
  const Type type(x.kind(), Shape{static_cast<int64_t>(boundaries.size())});
  const Value below = b.less(b.constant(Tensor::of(type, boundaries)), unsqueezed(b, x, x.rank()));
  c.out(b.reduced(b.casted(below, ElemKind::Int32), "sum", {x.rank()}, false));
}

void stumpFunc(OpImport& c) {
  const Value x = c.in(0);
  const Value isHigh = c.b.less(c.b.scalarLike(x, realArg(c, "threshold", 0)), x);
  c.out(
      c.b.where(isHigh, c.b.scalarLike(x, realArg(c, "high_value", 0)), c.b.scalarLike(x, realArg(c, "low_value", 0))));
}

// Whether an element is one of the values listed.
void isMemberOf(OpImport& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> members = intsArg(c, "value");
  const Type type(x.kind(), Shape{static_cast<int64_t>(members.size())});
  const Value equal = c.b.equal(unsqueezed(c.b, x, x.rank()), c.b.constant(Tensor::of(type, members)));
  c.out(c.b.reduced(equal, "max", {x.rank()}, false));
}

}  // namespace

std::span<const OpRow> formulaRows() {
  static constexpr OpRow rows[] = {
      row("LeakyRelu", leakyRelu),
      row("Elu", elu),
      row("Selu", selu),
      row("ThresholdedRelu", thresholdedRelu),
      row("HardSigmoid", hardSigmoid),
      row("Swish", swish),
      row("Gelu", gelu),
      row("PRelu", pRelu),
      row("Clip", clip),
      row("ReluN", reluN),
      row("Sqr", square),
      row("Cube", cube),
      row("Rsqrt", rsqrt),
      row("Cbrt", cubeRoot),
      row("Log1p", log1p),
      row("Scale", scale),
      row("Logit", logit),
      row("ReplaceNaN", replaceNan),
      row("ElementwiseLinear", elementwiseLinear),
      row("BatchBoxCox", batchBoxCox),
      row("Bucketize", bucketize),
      row("StumpFunc", stumpFunc),
      row("IsMemberOf", isMemberOf),
  };
  return rows;
}

}  // namespace aglow::caffe2
