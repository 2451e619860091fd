// Operators of com.microsoft on weights of few bits, quantized in blocks and packed into bytes. They are unpacked by
// plain arithmetic, which is done while compiling where the weights are constants.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/op_contrib.h"
#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "support/sizes.h"

namespace aglow::onnx {

namespace {

void checkBytes(Value x, std::string_view what) {
  if (x.kind() != ElemKind::UInt8)
    fail(Code::BadNode, fmt::format("expected '{}' as bytes (u8), got {}", what, x.type().text()));
}

// Elements of `bits` bits each out of the bytes along the last axis, the lowest bits of a byte first (or the highest).
Value unpacked(Builder& b, Value bytes, int64_t bits, bool lowFirst = true) {
  if (bits == 8) return bytes;
  const int64_t count = 8 / bits;
  const Value mask = b.scalarLike(bytes, static_cast<double>((1 << bits) - 1));
  std::vector<Value> parts;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t shift = bits * (lowFirst ? i : count - 1 - i);
    const Value shifted = shift == 0 ? bytes : b.shiftRight(bytes, b.scalarLike(bytes, static_cast<double>(shift)));
    parts.push_back(unsqueezed(b, b.bitAnd(shifted, mask), bytes.rank()));
  }
  std::vector<int64_t> dims = bytes.shape().dims();
  dims.back() *= count;
  return b.reshaped(b.concat(parts, {.axis = bytes.rank()}), std::move(dims));
}

int64_t bitsOf(const OpImport& c) {
  const int64_t bits = c.integer("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8)
    fail(Code::UnsupportedFeature, fmt::format("weights of {} bits are not supported; 2, 4 and 8 are", bits));
  return bits;
}

struct BlockShape {
  int64_t rows, columns, block, blocks;
};

BlockShape blockShape(const OpImport& c) {
  BlockShape s{.rows = c.integer("N"), .columns = c.integer("K"), .block = c.integer("block_size"), .blocks = 0};
  constexpr int64_t kMost = int64_t{1} << 31;
  if (s.rows < 1 || s.columns < 1 || s.rows > kMost || s.columns > kMost || s.block < 1 || s.block > kMost)
    fail(Code::BadNode,
         fmt::format("expected positive 'N', 'K' and 'block_size', got {}, {} and {}", s.rows, s.columns, s.block));
  s.blocks = ceilDiv(s.columns, s.block);
  return s;
}

void checkElements(Value x, int64_t count, std::string_view what) {
  if (x.type().elements() != count)
    fail(Code::BadNode, fmt::format("expected {} elements in '{}', got {}", count, what, x.type().text()));
}

// A zero point for each block, [rows, blocks]: packed as the weights are, or as numbers of the scales' kind.
Value zeroPoints(OpImport& c, const BlockShape& s, int64_t bits, ElemKind kind) {
  Builder& b = c.b;
  if (!c.has(3)) return b.scalar(kind, static_cast<double>(1 << (bits - 1)));
  Value zero = c.in(3);
  if (zero.kind() == ElemKind::UInt8) {
    const int64_t bytes = ceilDiv(s.blocks * bits, 8);
    checkElements(zero, s.rows * bytes, "zero_points");
    zero = sliced(b, unpacked(b, b.reshaped(zero, {s.rows, bytes}), bits), 1, 0, s.blocks);
  }
  checkElements(zero, s.rows * s.blocks, "zero_points");
  return b.casted(b.reshaped(zero, {s.rows, s.blocks}), kind);
}

// Of packed bytes [rows, bytes], the levels with rows and columns exchanged, [count, rows].
Tensor turnedLevels(const Tensor& packed, int64_t rows, int64_t count, int64_t bits) {
  const auto* from = packed.ref().as<const uint8_t>();
  const int64_t bytes = packed.type().elements() / rows;
  Tensor levels(Type(bits <= 4 ? ElemKind::UInt4 : ElemKind::UInt8, Shape{count, rows}));
  auto* to = reinterpret_cast<uint8_t*>(levels.mutableData());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < count; ++i)
      to[i * rows + row] = static_cast<uint8_t>(from[row * bytes + i * bits / 8] >> i * bits % 8 & ((1 << bits) - 1));
  return levels;
}

// Known weights as integers with their scales, [K, N], as other models have them; nothing where some of it is unknown.
Value knownWeights(OpImport& c, const BlockShape& s, int64_t bits) {
  Builder& b = c.b;
  const Value packed = c.in(1), scales = c.in(2), zero = c.optional(3);
  if (!isConstant(packed) || c.has(4) || c.in(0).kind() != ElemKind::Float32 || scales.kind() != ElemKind::Float32 ||
      s.block * bits % 8 != 0 || (zero && (!isConstant(zero) || zero.kind() != ElemKind::UInt8)))
    return {};
  const Tensor levels = turnedLevels(asConstant(packed)->tensor(), s.rows, s.columns, bits);
  Tensor offsets(levels.type().withShape(Shape{s.blocks, s.rows}));
  if (zero) {
    checkElements(zero, s.rows * ceilDiv(s.blocks * bits, 8), "zero_points");
    offsets = turnedLevels(asConstant(zero)->tensor(), s.rows, s.blocks, bits);
  } else {
    std::fill_n(reinterpret_cast<uint8_t*>(offsets.mutableData()), s.blocks * s.rows,
                static_cast<uint8_t>(1 << (bits - 1)));
  }
  return b.dequantizeLinear(b.constant(levels, packed.node->name()),
                            b.transposed(b.reshaped(scales, {s.rows, s.blocks}), {1, 0}), b.constant(offsets),
                            {.axis = 0, .blockSize = s.block, .to = ElemKind::Float32});
}

void matMulNBits(OpImport& c) {
  Builder& b = c.b;
  const int64_t bits = bitsOf(c);
  const BlockShape s = blockShape(c);
  if (c.flag("weight_prepacked"))
    fail(Code::UnsupportedFeature, "weights in a layout of one processor are not supported",
         "export the model without prepacked weights");
  const Value x = c.in(0), packed = c.in(1);
  checkBytes(packed, "B");
  const int64_t bytes = ceilDiv(s.block * bits, 8);
  checkElements(packed, s.rows * s.blocks * bytes, "B");
  checkElements(c.in(2), s.rows * s.blocks, "scales");
  if (const Value weights = knownWeights(c, s, bits)) {
    const Value y = matrixProduct(b, x, weights);
    c.out(c.has(5) ? b.add(y, c.in(5)) : y);
    return;
  }
  const ElemKind kind = wideKind(x.kind());
  const Value levels = b.casted(unpacked(b, b.reshaped(packed, {s.rows, s.blocks, bytes}), bits), kind);
  Value scale = b.casted(b.reshaped(c.in(2), {s.rows, s.blocks}), kind), zero = zeroPoints(c, s, bits, kind);
  Value weights;
  if (c.has(4)) {  // which block a column belongs to
    const Value flat = sliced(b, b.reshaped(levels, {s.rows, s.blocks * s.block}), 1, 0, s.columns);
    const Value groups = sliced(b, b.reshaped(c.in(4), {c.in(4).type().elements()}), 0, 0, s.columns);
    scale = b.gather(scale, groups, {.axis = 1});
    if (zero.rank() == 2) zero = b.gather(zero, groups, {.axis = 1});
    weights = b.mul(b.sub(flat, zero), scale);
  } else {
    const auto perBlock = [&](Value v) { return v.rank() == 2 ? unsqueezed(b, v, 2) : v; };
    const Value real = b.mul(b.sub(levels, perBlock(zero)), perBlock(scale));
    weights = sliced(b, b.reshaped(real, {s.rows, s.blocks * s.block}), 1, 0, s.columns);
  }
  Value y = matrixProduct(b, x, b.casted(b.transposed(weights, {1, 0}), x.kind()));
  if (c.has(5)) y = b.add(y, c.in(5));
  c.out(y);
}

// The sixteen values of a 4-bit float, and of a 4-bit "normal float", as bitsandbytes has them.
constexpr double kFp4[16] = {0.0,  5.208333333e-03,  0.66666667,  1.0,  0.33333333,  0.5,  0.16666667,  0.25,
                             -0.0, -5.208333333e-03, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25};
constexpr double kNf4[16] = {-1.0,
                             -0.6961928009986877,
                             -0.5250730514526367,
                             -0.39491748809814453,
                             -0.28444138169288635,
                             -0.18477343022823334,
                             -0.09105003625154495,
                             0.0,
                             0.07958029955625534,
                             0.16093020141124725,
                             0.24611230194568634,
                             0.33791524171829224,
                             0.44070982933044434,
                             0.5626170039176941,
                             0.7229568362236023,
                             1.0};

void matMulBnb4(OpImport& c) {
  Builder& b = c.b;
  const BlockShape s = blockShape(c);
  const Value x = c.in(0), packed = c.in(1), scale = c.in(2);
  const int64_t type = c.integer("quant_type");
  if (type != 0 && type != 1) fail(Code::BadNode, fmt::format("expected 'quant_type' 0 or 1, got {}", type));
  const int64_t count = s.rows * s.columns, blocks = ceilDiv(count, s.block);
  checkBytes(packed, "B");
  checkElements(packed, ceilDiv(count, 2), "B");
  checkElements(scale, blocks, "absmax");
  const ElemKind kind = wideKind(x.kind());
  const double* const table = type == 0 ? kFp4 : kNf4;
  const Value values = b.constant(Tensor::of(Type(kind, Shape{16}), std::vector<double>(table, table + 16)));
  const Value codes = unpacked(b, b.reshaped(packed, {packed.type().elements()}), 4, false);
  const Value levels = sliced(b, b.gather(values, b.casted(codes, ElemKind::Int32)), 0, 0, count);
  const Value even = paddedOrCropped(b, levels, {0}, {blocks * s.block - count}, b.scalarLike(levels, 0));
  const Value real = b.mul(b.reshaped(even, {blocks, s.block}), b.casted(b.reshaped(scale, {blocks, 1}), kind));
  const Value flat = sliced(b, b.reshaped(real, {blocks * s.block}), 0, 0, count);
  const bool turned = c.flag("transB", true);
  const Value weights =
      turned ? b.transposed(b.reshaped(flat, {s.rows, s.columns}), {1, 0}) : b.reshaped(flat, {s.columns, s.rows});
  c.out(matrixProduct(b, x, b.casted(weights, x.kind())));
}

// Rows of a quantized table, as reals; an index outside of it gives zeros.
void gatherBlockQuantized(OpImport& c) {
  Builder& b = c.b;
  Value data = c.in(0);
  const Value scales = c.in(2);
  const int rank = data.rank();
  const int64_t axis = c.axis(c.integer("gather_axis", 0), rank), along = c.axis(c.integer("quantize_axis", 1), rank);
  const bool bytes = data.kind() == ElemKind::UInt8;
  const int64_t bits = bytes ? bitsOf(c) : 8;
  Value zero = c.optional(3);
  if (bytes && bits < 8) {
    if (axis == rank - 1)
      fail(Code::UnsupportedFeature, "gathering along the axis that packs several elements into a byte");
    data = unpacked(b, data, bits);
    if (zero) zero = unpacked(b, zero, bits);
  }
  if (scales.rank() != rank)
    fail(Code::BadNode, fmt::format("expected scales with {} axes, got {}", rank, scales.type().text()));
  const auto place = static_cast<int>(along);
  const int64_t extent = data.dim(place);
  int64_t block = c.integer("block_size", 128);
  if (block == 0) block = extent;
  if (block < 1 || ceilDiv(extent, block) != scales.dim(place))
    fail(Code::BadNode, fmt::format("expected a scale for each block of {} along axis {} of {}, got {}", block, along,
                                    data.type().text(), scales.type().text()));
  const ElemKind kind = wideKind(scales.kind());
  // One value for each block, repeated along it.
  const auto spread = [&](Value v) {
    v = b.casted(sliced(b, v, along, 0, scales.dim(place)), kind);
    const Value upright = unsqueezed(b, v, along + 1);
    std::vector<int64_t> dims = upright.shape().dims();
    dims[static_cast<size_t>(along) + 1] = block;
    const Value repeated = b.expand(upright, {.shape = dims});
    dims.erase(dims.begin() + along + 1);
    dims[static_cast<size_t>(along)] *= block;
    return sliced(b, b.reshaped(repeated, dims), along, 0, extent);
  };
  Value levels = b.casted(data, kind);
  if (zero)
    levels = b.sub(levels, spread(zero));
  else if (bytes)
    levels = b.sub(levels, b.scalar(kind, static_cast<double>(1 << (bits - 1))));
  const Value table = b.casted(b.mul(levels, spread(scales)), scales.kind());

  const Value indices = b.casted(c.in(1), ElemKind::Int64);
  const auto number = [&](int64_t value) { return b.scalar(ElemKind::Int64, static_cast<double>(value)); };
  const int64_t count = table.dim(static_cast<int>(axis));
  const Value inside = b.logicalAnd(b.lessOrEqual(number(-count), indices), b.less(indices, number(count)));
  const Value rows = b.gather(table, b.where(inside, indices, number(0)), {.axis = axis});
  std::vector<int64_t> dims = inside.shape().dims();
  dims.resize(static_cast<size_t>(inside.rank() + rank - 1 - axis), 1);
  c.out(b.where(b.reshaped(inside, dims), rows, b.scalarLike(rows, 0)));
}

}  // namespace

std::span<const OpRow> contribBlockRows() {
  static constexpr OpRow rows[] = {
      microsoft("MatMulNBits", matMulNBits),
      microsoft("MatMulBnb4", matMulBnb4),
      microsoft("GatherBlockQuantized", gatherBlockQuantized),
  };
  return rows;
}

}  // namespace aglow::onnx
