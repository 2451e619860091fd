// Operators on quantized values: bytes with a scale and a zero point, which travel beside the tensor. Sums of products
// are exact integers; every result is rounded once, halves to even, as QNNPACK does. This is the form that ONNX's
// operators on bytes take as well, so that both become the same kernels.
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

void checkZero(int64_t zero) {
  if (zero < 0 || zero > 255)
    fail(Code::BadQuantization, fmt::format("expected a 'Y_zero_point' of 0 to 255, got {}", zero));
}

// The result's scale and zero point, as arguments name them.
Scale resultScale(const OpImport& c) {
  const double scale = realArg(c, "Y_scale", 1);
  const int64_t zero = intArg(c, "Y_zero_point", 0);
  if (!(scale > 0) || std::isinf(scale))
    fail(Code::BadQuantization, fmt::format("expected a finite positive 'Y_scale', got {}", scale));
  checkZero(zero);
  return {static_cast<float>(scale), static_cast<int32_t>(zero)};
}

Imported quantized(Value v, Scale scale) {
  Imported result = Imported::of(v);
  result.scale = scale;
  return result;
}

Value scalar(Builder& b, float value) { return b.scalar(ElemKind::Float32, static_cast<double>(value)); }

// Bytes with channels where convolutions have them.
Value channelBytes(const OpImport& c, int operand) {
  static_cast<void>(scaleOf(c, operand));  // says what is not quantized
  return channelsFirst(c, c.in(operand));
}

// Integers less the zero point of an operand.
Value centered(const OpImport& c, int operand, Value bytes) {
  const Value wide = c.b.casted(bytes, ElemKind::Int32);
  return c.b.sub(wide, c.b.scalar(ElemKind::Int32, scaleOf(c, operand).zero));
}

// The real values of bytes, or of a bias of i32.
Value real(const OpImport& c, int operand, Value integers) {
  const Scale scale = scaleOf(c, operand);
  if (integers.kind() == ElemKind::UInt8)
    return c.b.dequantizeLinear(integers, scalar(c.b, scale.scale), c.b.scalar(ElemKind::UInt8, scale.zero),
                                {.axis = 0, .to = ElemKind::Float32});
  return c.b.mul(c.b.casted(centered(c, operand, integers), ElemKind::Float32), scalar(c.b, scale.scale));
}
Value real(const OpImport& c, int operand) { return real(c, operand, c.in(operand)); }

Value toBytes(Builder& b, Value x, Scale to, bool relu = false) {
  return b.quantizeLinear(relu ? b.relu(x) : x, scalar(b, to.scale), b.scalar(ElemKind::UInt8, to.zero),
                          {.axis = 0, .to = ElemKind::UInt8});
}

// ---------------------------------------------------------------- in and out

void quantize(OpImport& c) {
  const Scale to = resultScale(c);
  c.out(0, quantized(toBytes(c.b, c.b.casted(c.in(0), ElemKind::Float32), to), to));
}

void dequantize(OpImport& c) { c.out(real(c, 0)); }

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
  if (*kind == ElemKind::UInt8) checkZero(intArg(c, "Y_zero_point", 0));
  const auto zero = static_cast<int32_t>(std::clamp<int64_t>(intArg(c, "Y_zero_point", 0), INT32_MIN, INT32_MAX));
  c.out(0, quantized(c.b.constant(tensor.retyped(tensor.type().withShape(shape))), {scale, zero}));
}

// ---------------------------------------------------------------- layers

// Sums of products as real numbers, with the bias, which is kept in units of the products unless it has a form of its
// own.
Value realSum(const OpImport& c, Value sum, int64_t channels, int64_t axis) {
  Builder& b = c.b;
  const Value unit = scalar(b, scaleOf(c, 0).scale * scaleOf(c, 1).scale);
  const auto scaled = [&](Value v) { return b.mul(b.casted(v, ElemKind::Float32), unit); };
  if (!c.has(2)) return scaled(sum);
  const Value bias = c.in(2);
  if (bias.type().elements() != channels)
    fail(Code::BadNode, fmt::format("expected {} values of bias, got {}", channels, bias.type().text()));
  const auto placed = [&](Value v) { return onnx::alongAxis(b, v, axis, sum.rank()); };
  if (bias.kind() == ElemKind::Int32) return scaled(b.add(sum, placed(bias)));
  const Value own = isFloat(bias.kind()) ? b.casted(bias, ElemKind::Float32) : real(c, 2);
  return b.add(scaled(sum), placed(own));
}

template <bool Relu>
void conv(OpImport& c) {
  const Scale to = resultScale(c);
  const Value x = centered(c, 0, channelBytes(c, 0)), filter = centered(c, 1, channelBytes(c, 1));
  const Window window = readWindow(c, x, kernelOf(c, x, filter));
  const Value sum = c.b.conv(
      x, filter, Value{},
      {.strides = window.strides, .pads = window.pads, .dilations = window.dilations, .group = intArg(c, "group", 1)});
  c.out(0, quantized(orderedAsSaid(c, toBytes(c.b, realSum(c, sum, sum.dim(1), 1), to, Relu)), to));
}

void convTranspose(OpImport& c) {
  const Scale to = resultScale(c);
  const Value x = centered(c, 0, channelBytes(c, 0)), filter = centered(c, 1, channelBytes(c, 1));
  const Window window = readWindow(c, x, kernelOf(c, x, filter));
  const Value sum = c.b.convTranspose(x, filter, Value{},
                                      {.strides = window.strides,
                                       .pads = window.pads,
                                       .dilations = window.dilations,
                                       .group = intArg(c, "group", 1),
                                       .outputPadding = windowList(c, "adj", window.kernel.size(), 0, 0)});
  c.out(0, quantized(orderedAsSaid(c, toBytes(c.b, realSum(c, sum, sum.dim(1), 1), to)), to));
}

template <bool Relu>
void fc(OpImport& c) {
  const Scale to = resultScale(c);
  const FcOperands operands = fcOperands(c, centered(c, 0, c.in(0)), centered(c, 1, c.in(1)), false);
  const Value sum = c.b.matMul(operands.rows, operands.weights);
  const Value bytes = toBytes(c.b, realSum(c, sum, operands.dims.back(), 1), to, Relu);
  c.out(0, quantized(c.b.reshaped(bytes, operands.dims), to));
}

template <bool Relu>
void sum(OpImport& c) {
  const Scale to = resultScale(c);
  Value total = real(c, 0);
  for (int i = 1; i < c.inputs(); ++i) total = c.b.add(total, real(c, i));
  c.out(0, quantized(toBytes(c.b, total, to, Relu), to));
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
  const Value x = real(c, 0, channelBytes(c, 0));
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
  c.out(0, quantized(orderedAsSaid(c, toBytes(c.b, mean, to, Relu)), to));
}

void relu(OpImport& c) {
  const Scale scale = scaleOf(c, 0);
  c.out(0, quantized(c.b.max(c.in(0), c.b.scalarLike(c.in(0), std::max(0, scale.zero))), scale));
}

void leakyRelu(OpImport& c) {
  const Scale to = resultScale(c);
  const Value y = c.b.leakyRelu(real(c, 0), {.alpha = realArg(c, "alpha", 0.01)});
  c.out(0, quantized(toBytes(c.b, y, to), to));
}

// Shares of 1 are kept in 256 steps, whatever the arguments say.
constexpr Scale kShares{1.0F / 256, 0};

void sigmoid(OpImport& c) { c.out(0, quantized(toBytes(c.b, c.b.sigmoid(real(c, 0)), kShares), kShares)); }

void softmax(OpImport& c) {
  const Value x = real(c, 0);
  const Value rows = asMatrix(c.b, x, c.axis(intArg(c, "axis", 1), x.rank()));
  const Value y = c.b.reshaped(c.b.softmax(rows, {.axis = 1}), x.shape().dims());
  c.out(0, quantized(toBytes(c.b, y, kShares), kShares));
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
    parts.push_back(same ? c.in(i) : toBytes(c.b, real(c, i), to));
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
