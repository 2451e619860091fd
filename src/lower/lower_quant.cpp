// Quantization with scales as operands: division or multiplication in a float kind, scales spread over the tensor.
#include <cmath>

#include "graph/op_views.h"
#include "graph/wide.h"
#include "lower/rules.h"

namespace aglow::lowering {

namespace {

// One value, one an index of the axis, or one a block along it, so that it broadcasts to x.
Value spread(Builder& b, Value v, const Shape& x, int64_t axis, int64_t block) {
  if (block == 0) {
    if (v.type().elements() == 1) return b.reshaped(v, {});
    std::vector<int64_t> dims(static_cast<size_t>(x.rank()), 1);
    dims[static_cast<size_t>(axis)] = v.dim(0);
    return b.reshaped(v, std::move(dims));
  }
  std::vector<int64_t> single = v.shape().dims(), many = single, joined = single;
  single.insert(single.begin() + axis + 1, 1);
  many.insert(many.begin() + axis + 1, block);
  joined[static_cast<size_t>(axis)] *= block;
  const Value repeated = b.reshaped(b.expand(b.reshaped(v, single), {.shape = many}), joined);
  if (repeated.shape() == x) return repeated;
  return b.slice(repeated, {.starts = std::vector<int64_t>(joined.size(), 0), .sizes = x.dims()});
}

// The ends of an integer kind.
std::pair<double, double> rangeOf(ElemKind kind) {
  const int bits = elemInfo(kind).bits;
  if (isUnsigned(kind)) return {0, std::ldexp(1.0, bits) - 1};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
}

// In which kind x is divided: that of the scale, unless arithmetic is not done in it. A quotient of integers is
// a real number.
ElemKind quotientKind(ElemKind scale) {
  if (isInteger(scale)) return ElemKind::Float64;
  return elemInfo(scale).bits <= 8 ? ElemKind::Float32 : scale;
}

}  // namespace

std::vector<Value> rescale(Builder& b, Node& node) {
  const RescaleNode v(node);
  const Value real = b.dequantize(v.x(), {.to = ElemKind::Float32});
  return {b.quantize(real, {.to = v.to(), .scales = v.scales(), .offsets = v.offsets(), .axis = v.axis()})};
}

std::vector<Value> quantizeLinear(Builder& b, Node& node) {
  const QuantizeLinearNode v(node);
  const Shape& shape = v.x().shape();
  const ElemKind kind = quotientKind(v.scale().kind()), to = v.type().kind();
  const Value scale = spread(b, b.casted(v.scale(), kind), shape, v.axis(), v.blockSize());
  Value y = widened(b, b.div(b.casted(v.x(), kind), scale));
  if (isInteger(to)) y = b.round(y);
  if (v.offset()) y = b.add(y, spread(b, b.casted(v.offset(), y.kind()), shape, v.axis(), v.blockSize()));
  if (isInteger(to)) {
    const auto [low, high] = rangeOf(to);
    y = b.clip(y, b.scalarLike(y, low), b.scalarLike(y, high));
  }
  return {b.cast(y, {.to = to, .saturate = v.saturate()})};
}

std::vector<Value> dequantizeLinear(Builder& b, Node& node) {
  const DequantizeLinearNode v(node);
  const Shape& shape = v.x().shape();
  const ElemKind kind = wideKind(v.to());
  Value x = b.casted(v.x(), kind);
  if (v.offset()) x = b.sub(x, spread(b, b.casted(v.offset(), kind), shape, v.axis(), v.blockSize()));
  const Value scale = spread(b, b.casted(v.scale(), kind), shape, v.axis(), v.blockSize());
  return {b.casted(b.mul(x, scale), v.to())};
}

}  // namespace aglow::lowering
