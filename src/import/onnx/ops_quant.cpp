// Quantization as ONNX has it: scales and zero points as operands, products of integers.
#include <fmt/format.h>

#include <cmath>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/op_window.h"

namespace aglow::onnx {

namespace {

// Scales that the file fixes; those computed at run time are what they are.
void checkScale(Value scale) {
  const Constant* constant = asConstant(scale);
  if (constant == nullptr) return;
  for (const double value : constant->tensor().doubles())
    if (!(value > 0) || std::isinf(value))
      fail(Code::BadQuantization, fmt::format("expected finite positive scales, got {}", value));
}

struct Granularity {
  Value scale, zero;
  int64_t axis, block;
};

// One value of any rank becomes a scalar; else the axis counts.
Granularity granularityOf(OpImport& c, Value x) {
  Granularity g{c.in(1), c.optional(2), 0, c.integer("block_size", 0)};
  checkScale(g.scale);
  if (g.zero && g.zero.shape() != g.scale.shape() && !(g.zero.type().elements() == 1 && g.scale.type().elements() == 1))
    fail(Code::BadQuantization, fmt::format("expected as many zero points as scales, got {} and {}",
                                            g.zero.type().text(), g.scale.type().text()));
  if (g.block == 0 && g.scale.type().elements() == 1) {
    g.scale = c.b.reshaped(g.scale, {});
    if (g.zero) g.zero = c.b.reshaped(g.zero, {});
  } else {
    g.axis = c.axis(c.integer("axis", 1), x.rank());
  }
  return g;
}

// An element type that may be left open, as 0.
ElemKind elemOr(const OpImport& c, std::string_view name, ElemKind otherwise) {
  return c.integer(name, 0) == 0 ? otherwise : c.elem(name);
}

void quantizeLinear(OpImport& c) {
  const Value x = c.in(0);
  Granularity g = granularityOf(c, x);
  const ElemKind to = elemOr(c, "output_dtype", g.zero ? g.zero.kind() : ElemKind::UInt8);
  if (g.zero && g.zero.kind() != to)
    fail(Code::BadNode, fmt::format("expected a zero point of kind {} as 'output_dtype' says, got {}", elemName(to),
                                    g.zero.type().text()));
  g.scale = c.b.casted(g.scale, elemOr(c, "precision", g.scale.kind()));
  c.out(c.b.quantizeLinear(x, g.scale, g.zero,
                           {.axis = g.axis, .blockSize = g.block, .to = to, .saturate = c.flag("saturate", true)}));
}

void dequantizeLinear(OpImport& c) {
  const Value x = c.in(0);
  const Granularity g = granularityOf(c, x);
  c.out(c.b.dequantizeLinear(x, g.scale, g.zero,
                             {.axis = g.axis, .blockSize = g.block, .to = elemOr(c, "output_dtype", g.scale.kind())}));
}

void dynamicQuantizeLinear(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  if (x.kind() != ElemKind::Float32) fail(Code::BadNode, fmt::format("expected f32, got {}", x.type().text()));
  const Value zero = b.scalarLike(x, 0), levels = b.scalarLike(x, 255);
  const std::vector<int64_t> all = range(0, x.rank());
  const Value high = b.max(b.reduced(x, "max", all, false), zero), low = b.min(b.reduced(x, "min", all, false), zero);
  const Value width = b.where(b.equal(high, low), b.scalarLike(x, 1), b.sub(high, low));
  const Value scale = b.div(width, levels);
  const Value start = b.round(b.clip(b.neg(b.div(low, scale)), zero, levels));
  const Value offset = b.cast(start, {.to = ElemKind::UInt8});
  c.out(0, b.quantizeLinear(x, scale, offset, {.axis = 0}));
  c.out(1, scale);
  c.out(2, offset);
}

// Elements less their zero point, in a kind where products of them are exact.
Value centered(Builder& b, Value x, Value zero) {
  const ElemKind kind = isFloat(x.kind()) ? ElemKind::Float32 : ElemKind::Int32;
  const Value wide = b.casted(x, kind);
  return zero ? b.sub(wide, b.casted(zero, kind)) : wide;
}

// One value, or one a row of a matrix: a vector stands upright.
Value byRow(Builder& b, Value v) { return v && v.rank() == 1 && v.dim(0) != 1 ? unsqueezed(b, v, 1) : v; }

// One value, or one an output channel of a filter or, with `rank` less than the filter's, of a result.
Value byChannel(Builder& b, Value v, int64_t rank) {
  if (!v || v.type().elements() == 1) return v ? b.reshaped(v, {}) : v;
  if (v.rank() != 1) fail(Code::BadNode, fmt::format("expected one value a channel, got {}", v.type().text()));
  return alongAxis(b, v, 0, rank);
}

void checkBytes(Value x) {
  if (x.kind() != ElemKind::Int8 && x.kind() != ElemKind::UInt8)
    fail(Code::BadNode, fmt::format("expected i8 or u8, got {}", x.type().text()));
}

void matMulInteger(OpImport& c) {
  checkBytes(c.in(0));
  checkBytes(c.in(1));
  c.out(matrixProduct(c.b, centered(c.b, c.in(0), byRow(c.b, c.optional(2))), centered(c.b, c.in(1), c.optional(3))));
}

Value integerConv(OpImport& c, Value x, Value xZero, Value filter, Value filterZero, Value bias) {
  checkBytes(x);
  checkBytes(filter);
  const WindowAttrs window = readWindow(c, x, kernelOf(c, x, filter));
  const Value zero = xZero ? asScalar(c.b, xZero, "x_zero_point") : Value{};
  return c.b.conv(
      centered(c.b, x, zero), centered(c.b, filter, byChannel(c.b, filterZero, filter.rank())), bias,
      {.strides = window.strides, .pads = window.pads, .dilations = window.dilations, .group = c.integer("group", 1)});
}

void convInteger(OpImport& c) { c.out(integerConv(c, c.in(0), c.optional(2), c.in(1), c.optional(3), Value{})); }

// A sum of products of integers, with the scale of each product, as the result's integers.
Value requantized(OpImport& c, Value sum, Value scales, int scaleOperand) {
  checkScale(c.in(scaleOperand));
  const Value real = c.b.mul(c.b.casted(sum, ElemKind::Float32), scales);
  const Value scale = c.b.casted(asScalar(c.b, c.in(scaleOperand), "y_scale"), ElemKind::Float32);
  const Value zero = asScalar(c.b, c.in(scaleOperand + 1), "y_zero_point");
  return c.b.quantizeLinear(real, scale, zero, {.axis = 0});
}

void qLinearMatMul(OpImport& c) {
  const auto scaleOf = [&](int operand) {
    checkScale(c.in(operand));
    return c.b.casted(c.in(operand), ElemKind::Float32);
  };
  const Value a = centered(c.b, c.in(0), byRow(c.b, c.in(2))), b = centered(c.b, c.in(3), c.in(5));
  const Value scales = c.b.mul(byRow(c.b, scaleOf(1)), scaleOf(4));
  const Value sum = matrixProduct(c.b, a, b);
  // Scales of one element may have more axes than the product of two vectors.
  c.out(requantized(c, sum, scales.type().elements() == 1 ? c.b.reshaped(scales, {}) : scales, 6));
}

void qLinearConv(OpImport& c) {
  checkScale(c.in(1));
  checkScale(c.in(4));
  const Value sum = integerConv(c, c.in(0), c.in(2), c.in(3), c.in(5), c.optional(8));
  const Value scales = c.b.mul(asScalar(c.b, c.in(1), "x_scale"), byChannel(c.b, c.in(4), sum.rank() - 1));
  c.out(requantized(c, sum, scales, 6));
}

}  // namespace

std::span<const OpRow> quantRows() {
  static constexpr OpRow rows[] = {
      {"QuantizeLinear", quantizeLinear},
      {"DequantizeLinear", dequantizeLinear},
      {"DynamicQuantizeLinear", dynamicQuantizeLinear},
      {"MatMulInteger", matMulInteger},
      {"ConvInteger", convInteger},
      {"QLinearMatMul", qLinearMatMul},
      {"QLinearConv", qLinearConv},
  };
  return rows;
}

}  // namespace aglow::onnx
