// Operators of com.microsoft on 8-bit integers with their scales and zero points as operands. Elementwise ones compute
// with the real values between a dequantization and a quantization, which later stages may fuse.
#include <fmt/format.h>

#include "import/onnx/op_contrib.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

constexpr int64_t kOpset = 13;  // of the standard operators below

// Operand `at` with the scale and zero point that follow it, as real values.
Value real(OpImport& c, int at) {
  const Value zero = c.has(at + 2) ? asScalar(c.b, c.in(at + 2), "zero point") : Value{};
  return c.b.dequantizeLinear(c.in(at), asScalar(c.b, c.in(at + 1), "scale"), zero,
                              {.axis = 0, .to = c.in(at + 1).kind()});
}

// Real values as the integers that the scale and zero point at two operands say; of this kind without a zero point.
Value whole(OpImport& c, Value x, int scale, ElemKind kind) {
  const Value zero = c.has(scale + 1) ? asScalar(c.b, c.in(scale + 1), "zero point") : Value{};
  return c.b.quantizeLinear(x, asScalar(c.b, c.in(scale), "scale"), zero, {.axis = 0, .to = zero ? zero.kind() : kind});
}

void quantizeLinear(OpImport& c) { c.out(standardValue(c, "QuantizeLinear", 21, {c.in(0), c.in(1), c.optional(2)})); }
void dequantizeLinear(OpImport& c) {
  c.out(standardValue(c, "DequantizeLinear", 21, {c.in(0), c.in(1), c.optional(2)}));
}

void qLinearAdd(OpImport& c) { c.out(whole(c, c.b.add(real(c, 0), real(c, 3)), 6, c.in(0).kind())); }
void qLinearMul(OpImport& c) { c.out(whole(c, c.b.mul(real(c, 0), real(c, 3)), 6, c.in(0).kind())); }
void qLinearSigmoid(OpImport& c) { c.out(whole(c, c.b.sigmoid(real(c, 0)), 3, c.in(0).kind())); }
void qLinearLeakyRelu(OpImport& c) {
  c.out(whole(c, c.b.leakyRelu(real(c, 0), {.alpha = c.real("alpha", 0.01f)}), 3, c.in(0).kind()));
}
void qLinearWhere(OpImport& c) { c.out(whole(c, c.b.where(c.in(0), real(c, 1), real(c, 4)), 7, c.in(1).kind())); }

void qLinearReduceMean(OpImport& c) {
  c.out(whole(c, standardValue(c, "ReduceMean", kOpset, {real(c, 0)}), 3, c.in(0).kind()));
}

void qLinearSoftmax(OpImport& c) {
  c.out(whole(c, standardValue(c, "Softmax", c.integer("opset") < kOpset ? 11 : kOpset, {real(c, 0)}), 3,
              c.in(0).kind()));
}

void qLinearPool(OpImport& c, std::string_view standard) {
  const bool last = c.flag("channels_last");
  const Value x = last ? channelsFirst(c.b, real(c, 0)) : real(c, 0);
  const Value y = standardValue(c, standard, 11, {x});
  c.out(whole(c, last ? channelsLast(c.b, y) : y, 3, c.in(0).kind()));
}
void qLinearAveragePool(OpImport& c) { qLinearPool(c, "AveragePool"); }
void qLinearGlobalAveragePool(OpImport& c) { qLinearPool(c, "GlobalAveragePool"); }

void nhwcMaxPool(OpImport& c) {
  c.out(channelsLast(c.b, standardValue(c, "MaxPool", 12, {channelsFirst(c.b, c.in(0))})));
}

void qLinearConcat(OpImport& c) {
  if (c.inputs() < 5 || c.inputs() % 3 != 2)
    fail(Code::BadNode, fmt::format("expected a scale, a zero point and triples of operands, got {}", c.inputs()));
  std::vector<Value> parts;
  for (int at = 2; at < c.inputs(); at += 3) parts.push_back(real(c, at));
  const int64_t axis = c.axis(c.integer("axis"), parts.front().rank());
  c.out(whole(c, c.b.concat(parts, {.axis = axis}), 0, c.in(2).kind()));
}

void qLinearConv(OpImport& c) {
  const bool last = c.flag("channels_last");
  std::vector<Imported> operands;
  for (int i = 0; i < c.inputs(); ++i) operands.push_back(c.operand(i));
  if (last) operands.front() = Imported::of(channelsFirst(c.b, c.in(0)));
  const Value y = c.standard(standardNode(c, "QLinearConv"), 10, std::move(operands)).front().tensor;
  c.out(last ? channelsLast(c.b, y) : y);
}

// ---------------------------------------------------------------- products

// A sum of products of integers times the scales of its factors: one each, or one a row of A and one a column of B.
Value scaledProduct(OpImport& c, Value sum, Value aScale, Value bScale) {
  Builder& b = c.b;
  const auto spread = [&](Value v, bool column) {
    if (v.type().elements() == 1) return b.reshaped(v, {});
    return column && v.rank() == 1 ? unsqueezed(b, v, 1) : v;
  };
  return b.mul(b.casted(sum, aScale.kind()), b.mul(spread(aScale, true), spread(bScale, false)));
}

Value integerProduct(OpImport& c, Value x, Value y, Value xZero, Value yZero) {
  return standardValue(c, "MatMulInteger", 10, {x, y, xZero, yZero});
}

void matMulIntegerToFloat(OpImport& c) {
  const Value sum = integerProduct(c, c.in(0), c.in(1), c.optional(4), c.optional(5));
  const Value y = scaledProduct(c, sum, c.in(2), c.in(3));
  c.out(c.has(6) ? c.b.add(y, c.in(6)) : y);
}

void dynamicQuantizeMatMul(OpImport& c) {
  Node node = standardNode(c, "DynamicQuantizeLinear");
  const std::vector<Imported> a = c.standard(node, 11, {c.operand(0)});
  const Value sum = integerProduct(c, a[0].tensor, c.in(1), a[2].tensor, c.optional(3));
  const Value y = scaledProduct(c, sum, a[1].tensor, c.in(2));
  c.out(c.has(4) ? c.b.add(y, c.in(4)) : y);
}

void matMulInteger16(OpImport& c) {
  const bool plain = isUnsigned(c.in(0).kind()) && isUnsigned(c.in(1).kind());
  const ElemKind kind = plain ? ElemKind::UInt32 : ElemKind::Int32;
  c.out(matrixProduct(c.b, c.b.casted(c.in(0), kind), c.b.casted(c.in(1), kind)));
}

void qGemm(OpImport& c) {
  Builder& b = c.b;
  const auto turned = [&](int operand, std::string_view flag) {
    const Value x = c.in(operand);
    if (x.rank() != 2) fail(Code::BadNode, fmt::format("expected a matrix, got {}", x.type().text()));
    return c.flag(flag) ? b.transposed(x, {1, 0}) : x;
  };
  Value sum = integerProduct(c, turned(0, "transA"), turned(3, "transB"), c.optional(2), c.optional(5));
  if (c.has(6)) sum = b.add(sum, c.in(6));
  Value y = scaledProduct(c, sum, c.in(1), c.in(4));
  if (const double alpha = c.real("alpha", 1); alpha != 1) y = b.mul(y, b.scalarLike(y, alpha));
  c.out(c.has(7) ? whole(c, y, 7, c.in(0).kind()) : y);
}

// ---------------------------------------------------------------- integers

Value centered(Builder& b, Value x, Value zero) {
  const Value wide = b.casted(x, ElemKind::Int32);
  return zero ? b.sub(wide, b.casted(zero, ElemKind::Int32)) : wide;
}

void mulInteger(OpImport& c) {
  c.out(c.b.mul(centered(c.b, c.in(0), c.optional(1)), centered(c.b, c.in(2), c.optional(3))));
}

void reduceSumInteger(OpImport& c) {
  const ElemKind kind = isUnsigned(c.in(0).kind()) ? ElemKind::UInt32 : ElemKind::Int32;
  c.out(standardValue(c, "ReduceSum", 11, {c.b.casted(c.in(0), kind)}));
}

// Weights [directions, inputs, gates] as reals [directions, gates, inputs].
Value gateWeights(OpImport& c, int weights, int scale) {
  Builder& b = c.b;
  const Value w = c.in(weights);
  if (w.rank() != 3) fail(Code::BadNode, fmt::format("expected weights with 3 axes, got {}", w.type().text()));
  const auto spread = [&](Value v) {
    const Value wide = b.casted(v, ElemKind::Float32);
    if (v.type().elements() == w.dim(0)) return b.reshaped(wide, {w.dim(0), 1, 1});
    if (v.type().elements() == w.dim(0) * w.dim(2)) return b.reshaped(wide, {w.dim(0), 1, w.dim(2)});
    fail(Code::BadNode,
         fmt::format("expected one value a direction of {}, or one a gate, got {}", w.type().text(), v.type().text()));
  };
  const Value shifted = b.sub(b.casted(w, ElemKind::Float32), spread(c.in(scale + 1)));
  return b.transposed(b.mul(shifted, spread(c.in(scale))), {0, 2, 1});
}

// The weights are integers; what enters the products stays real, which is what the quantization approximates.
void dynamicQuantizeLstm(OpImport& c) {
  std::vector<Imported> operands{c.operand(0), Imported::of(gateWeights(c, 1, 8)), Imported::of(gateWeights(c, 2, 10))};
  for (int i = 3; i < 8; ++i) operands.push_back(c.operand(i));
  std::vector<Imported> results = c.standard(standardNode(c, "LSTM"), 7, std::move(operands));
  for (size_t i = 0; i < results.size(); ++i) c.out(static_cast<int>(i), results[i]);
}

}  // namespace

std::span<const OpRow> contribQuantRows() {
  static constexpr OpRow rows[] = {
      microsoft("QuantizeLinear", quantizeLinear),
      microsoft("DequantizeLinear", dequantizeLinear),
      microsoft("QLinearAdd", qLinearAdd),
      microsoft("QLinearMul", qLinearMul),
      microsoft("QLinearSigmoid", qLinearSigmoid),
      microsoft("QLinearLeakyRelu", qLinearLeakyRelu),
      microsoft("QLinearWhere", qLinearWhere),
      microsoft("QLinearReduceMean", qLinearReduceMean),
      microsoft("QLinearSoftmax", qLinearSoftmax),
      microsoft("QLinearAveragePool", qLinearAveragePool),
      microsoft("QLinearGlobalAveragePool", qLinearGlobalAveragePool),
      microsoft("QLinearConcat", qLinearConcat),
      microsoft("QLinearConv", qLinearConv),
      microsoft("NhwcMaxPool", nhwcMaxPool),
      microsoft("MatMulIntegerToFloat", matMulIntegerToFloat),
      microsoft("DynamicQuantizeMatMul", dynamicQuantizeMatMul),
      microsoft("MatMulInteger16", matMulInteger16),
      microsoft("QGemm", qGemm),
      microsoft("MulInteger", mulInteger),
      microsoft("ReduceSumInteger", reduceSumInteger),
      microsoft("DynamicQuantizeLSTM", dynamicQuantizeLstm),
  };
  return rows;
}

}  // namespace aglow::onnx
