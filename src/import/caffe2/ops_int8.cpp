// Operators on quantized values: bytes with a scale and a zero point, which travel beside the tensor. Sums of products
// are exact integers; every result is rounded once, halves away from zero.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/caffe2/convert.h"
#include "import/caffe2/linear.h"
#include "import/caffe2/op_tables.h"
#include "import/caffe2/window.h"

namespace aglow::caffe2 {

namespace {

using Scale = Imported::Scale;

Scale scaleOf(const OpImport& c, int operand) {
  static_cast<void>(c.in(operand));  // names what is missing
  const std::optional<Scale>& scale = c.operand(operand).scale;
  if (!scale)
    fail(Code::BadNode,
         fmt::format("expected quantized values in input {}, got {}", operand, c.in(operand).type().text()));
  return *scale;
}

// The result's scale and zero point, as arguments name them.
Scale resultScale(const OpImport& c) {
  const double scale = realArg(c, "Y_scale", 1);
  const int64_t zero = intArg(c, "Y_zero_point", 0);
  if (!(scale > 0) || std::isinf(scale))
    fail(Code::BadQuantization, fmt::format("expected a finite positive 'Y_scale', got {}", scale));
  if (zero < -255 || zero > 255)
    fail(Code::BadQuantization, fmt::format("expected a 'Y_zero_point' of 8 bits, got {}", zero));
  return {static_cast<float>(scale), static_cast<int32_t>(zero)};
}

Imported quantized(Value v, Scale scale) {
  Imported result = Imported::of(v);
  result.scale = scale;
  return result;
}

// Integers less their zero point.
Value centered(const OpImport& c, int operand) {
  const Value wide = c.b.casted(c.in(operand), ElemKind::Int32);
  const int32_t zero = scaleOf(c, operand).zero;
  return zero == 0 ? wide : c.b.sub(wide, c.b.scalar(ElemKind::Int32, zero));
}

Value number(Builder& b, double value) { return b.scalar(ElemKind::Float64, value); }

// The real values, wide enough for exact sums.
Value real(const OpImport& c, int operand) {
  return c.b.mul(c.b.casted(centered(c, operand), ElemKind::Float64),
                 number(c.b, static_cast<double>(scaleOf(c, operand).scale)));
}

// f64 in units of the result, as its bytes.
Value rounded(Builder& b, Value units, Scale to, bool relu) {
  const Value half = b.mul(b.sign(units), b.floor(b.add(b.abs(units), number(b, 0.5))));
  const Value low = number(b, relu ? std::max(0, to.zero) : 0);
  const Value held = b.clip(b.add(half, number(b, to.zero)), low, number(b, 255));
  return b.casted(held, ElemKind::UInt8);
}

Value quantizedFromReal(Builder& b, Value x, Scale to, bool relu) {
  return rounded(b, b.div(x, number(b, static_cast<double>(to.scale))), to, relu);
}

// ---------------------------------------------------------------- in and out

void quantize(OpImport& c) {
  Builder& b = c.b;
  const Scale to = resultScale(c);
  // Here, and only here, Caffe2 rounds halves to even, and divides in f32.
  const Value x = b.casted(c.in(0), ElemKind::Float32);
  const Value units = b.round(b.div(x, b.scalarLike(x, static_cast<double>(to.scale))));
  const Value shifted = b.add(units, b.scalarLike(x, to.zero));
  const Value held = b.clip(shifted, b.scalarLike(x, 0), b.scalarLike(x, 255));
  c.out(0, quantized(b.casted(held, ElemKind::UInt8), to));
}

void dequantize(OpImport& c) {
  const Value x = c.b.casted(centered(c, 0), ElemKind::Float32);
  c.out(c.b.mul(x, c.b.scalarLike(x, static_cast<double>(scaleOf(c, 0).scale))));
}

void givenFill(OpImport& c) {
  const Attribute* values = c.attr("values");
  const std::optional<ElemKind> kind = givenKind(c.node);
  AGLOW_CHECK(kind.has_value(), "an Int8 fill without a kind");
  const Tensor tensor = orFail(givenValues(values == nullptr ? Attribute{} : *values, *kind));
  const Shape shape = shapeOf(intsArg(c, "shape"));
  if (shape.elements() != tensor.type().elements())
    fail(Code::BadNode, fmt::format("expected {} values for a shape of {}, got {}", shape.elements(), shape.text(),
                                    tensor.type().elements()));
  const auto scale = static_cast<float>(realArg(c, "Y_scale", 1));
  const auto zero = static_cast<int32_t>(std::clamp<int64_t>(intArg(c, "Y_zero_point", 0), INT32_MIN, INT32_MAX));
  c.out(0, quantized(c.b.constant(tensor.retyped(tensor.type().withShape(shape))), {scale, zero}));
}

// ---------------------------------------------------------------- layers

// Sums of products as real numbers in units of the result, with the bias, which is kept in units of the products unless
// it has a form of its own.
Value withBias(const OpImport& c, Value sum, int64_t channels, int64_t axis, Scale to) {
  Builder& b = c.b;
  const double unit = static_cast<double>(scaleOf(c, 0).scale) * static_cast<double>(scaleOf(c, 1).scale);
  const auto scaled = [&](Value v, double by) { return b.mul(b.casted(v, ElemKind::Float64), number(b, by)); };
  const auto perUnit = static_cast<double>(to.scale);
  if (!c.has(2)) return scaled(sum, unit / perUnit);
  const Value bias = c.in(2);
  if (bias.type().elements() != channels)
    fail(Code::BadNode, fmt::format("expected {} values of bias, got {}", channels, bias.type().text()));
  const auto placed = [&](Value v) { return onnx::alongAxis(b, v, axis, sum.rank()); };
  if (bias.kind() == ElemKind::Int32) return scaled(b.add(sum, placed(bias)), unit / perUnit);
  const Value own = isFloat(bias.kind()) ? b.casted(bias, ElemKind::Float64) : real(c, 2);
  return b.add(scaled(sum, unit / perUnit), b.div(placed(own), number(b, perUnit)));
}

template <bool Relu>
void conv(OpImport& c) {
  const Scale to = resultScale(c);
  const Value x = channelsFirst(c, centered(c, 0)), filter = channelsFirst(c, centered(c, 1));
  const Window window = readWindow(c, x, kernelOf(c, x, filter));
  const Value sum = c.b.conv(
      x, filter, Value{},
      {.strides = window.strides, .pads = window.pads, .dilations = window.dilations, .group = intArg(c, "group", 1)});
  c.out(0, quantized(orderedAsSaid(c, rounded(c.b, withBias(c, sum, sum.dim(1), 1, to), to, Relu)), to));
}

void convTranspose(OpImport& c) {
  const Scale to = resultScale(c);
  const Value x = channelsFirst(c, centered(c, 0)), filter = channelsFirst(c, centered(c, 1));
  const Window window = readWindow(c, x, kernelOf(c, x, filter));
  const Value sum = c.b.convTranspose(x, filter, Value{},
                                      {.strides = window.strides,
                                       .pads = window.pads,
                                       .dilations = window.dilations,
                                       .group = intArg(c, "group", 1),
                                       .outputPadding = windowList(c, "adj", window.kernel.size(), 0, 0)});
  c.out(0, quantized(orderedAsSaid(c, rounded(c.b, withBias(c, sum, sum.dim(1), 1, to), to, false)), to));
}

template <bool Relu>
void fc(OpImport& c) {
  const Scale to = resultScale(c);
  const FcOperands operands = fcOperands(c, centered(c, 0), centered(c, 1), false);
  const Value sum = c.b.matMul(operands.rows, operands.weights);
  const Value bytes = rounded(c.b, withBias(c, sum, operands.dims.back(), 1, to), to, Relu);
  c.out(0, quantized(c.b.reshaped(bytes, operands.dims), to));
}

template <bool Relu>
void sum(OpImport& c) {
  const Scale to = resultScale(c);
  Value total = real(c, 0);
  for (int i = 1; i < c.inputs(); ++i) total = c.b.add(total, real(c, i));
  c.out(0, quantized(quantizedFromReal(c.b, total, to, Relu), to));
}

// ---------------------------------------------------------------- one operand

template <bool Relu>
void maxPool(OpImport& c) {
  const Scale scale = scaleOf(c, 0);
  Value y = pooled(c, channelsFirst(c, c.in(0)), false);
  if (Relu) y = c.b.max(y, c.b.scalarLike(y, std::max(0, scale.zero)));
  c.out(0, quantized(orderedAsSaid(c, y), scale));
}

// Padding counts, as zeros.
template <bool Relu>
void averagePool(OpImport& c) {
  const Scale to = resultScale(c);
  const Value x = channelsFirst(c, real(c, 0));
  Value mean;
  if (flag(c, "global_pooling")) {
    mean = pooled(c, x, true);
  } else {
    const Window window = readWindow(c, x);
    mean = c.b.avgPool(x, {.kernel = window.kernel,
                           .strides = window.strides,
                           .pads = window.pads,
                           .dilations = window.dilations,
                           .sizes = window.sizes,
                           .countIncludePad = true});
  }
  c.out(0, quantized(orderedAsSaid(c, quantizedFromReal(c.b, mean, to, Relu)), to));
}

void relu(OpImport& c) {
  const Scale scale = scaleOf(c, 0);
  c.out(0, quantized(c.b.max(c.in(0), c.b.scalarLike(c.in(0), std::max(0, scale.zero))), scale));
}

void leakyRelu(OpImport& c) {
  const Scale to = resultScale(c);
  const Value y = c.b.leakyRelu(real(c, 0), {.alpha = realArg(c, "alpha", 0.01)});
  c.out(0, quantized(quantizedFromReal(c.b, y, to, false), to));
}

// Shares of 1 are kept in 256 steps, whatever the arguments say.
constexpr Scale kShares{1.0F / 256, 0};

void sigmoid(OpImport& c) {
  c.out(0, quantized(quantizedFromReal(c.b, c.b.sigmoid(real(c, 0)), kShares, false), kShares));
}

void softmax(OpImport& c) {
  const Value x = real(c, 0);
  const Value rows = asMatrix(c.b, x, c.axis(intArg(c, "axis", 1), x.rank()));
  const Value y = c.b.reshaped(c.b.softmax(rows, {.axis = 1}), x.shape().dims());
  c.out(0, quantized(quantizedFromReal(c.b, y, kShares, false), kShares));
}

void concat(OpImport& c) {
  const Scale to = c.hasAttr("Y_scale") ? resultScale(c) : scaleOf(c, 0);
  // Without a word on the order of axes, the first one.
  const int64_t usual = !c.hasAttr("order") ? 0 : channelsLast(c) ? 3 : 1;
  const int64_t axis = c.axis(intArg(c, "axis", usual), c.in(0).rank());
  std::vector<Value> parts;
  std::vector<int64_t> extents;
  for (int i = 0; i < c.inputs(); ++i) {
    const Scale own = scaleOf(c, i);
    const bool same = own.scale == to.scale && own.zero == to.zero;
    parts.push_back(same ? c.in(i) : quantizedFromReal(c.b, real(c, i), to, false));
    if (parts.back().rank() <= axis)
      fail(Code::BadNode, fmt::format("expected an axis {} in input {}, got {}", axis, i, c.in(i).type().text()));
    extents.push_back(parts.back().dim(static_cast<int>(axis)));
  }
  c.out(0, quantized(c.b.concat(parts, {.axis = axis}), to));
  if (c.wants(1)) c.out(1, c.b.constant(Tensor::of(Type(ElemKind::Int32, Shape{c.inputs()}), extents)));
}

}  // namespace

std::span<const OpRow> int8Rows() {
  static constexpr OpRow rows[] = {
      row("Int8Quantize", quantize),
      row("Int8Dequantize", dequantize),
      row("Int8GivenTensorFill", givenFill),
      row("Int8GivenIntTensorFill", givenFill),
      row("Int8Conv", conv<false>),
      row("Int8ConvRelu", conv<true>),
      row("Int8ConvTranspose", convTranspose),
      row("Int8FC", fc<false>),
      row("Int8FCRelu", fc<true>),
      row("Int8Add", sum<false>),
      row("Int8AddRelu", sum<true>),
      row("Int8Sum", sum<false>),
      row("Int8SumRelu", sum<true>),
      row("Int8MaxPool", maxPool<false>),
      row("Int8MaxPoolRelu", maxPool<true>),
      row("Int8AveragePool", averagePool<false>),
      row("Int8AveragePoolRelu", averagePool<true>),
      row("Int8Relu", relu),
      row("Int8LeakyRelu", leakyRelu),
      row("Int8Sigmoid", sigmoid),
      row("Int8Softmax", softmax),
      row("Int8Concat", concat),
  };
  return rows;
}

}  // namespace aglow::caffe2
