// Embedding tables: rows picked by indices and combined by lengths. Rows may be stored in 8, 4 or 2 bits an element,
// with a scale and a bias for each row beside the table or after the row's elements.
#include <fmt/format.h>

#include "import/caffe2/op_tables.h"
#include "import/caffe2/segments.h"

namespace aglow::caffe2 {

namespace {

// Bytes of [rows, count] starting at a column, as one unsigned number a row, low byte first.
Value numberAt(Builder& b, Value bytes, int64_t column, int count, ElemKind kind) {
  Value number;
  for (int i = 0; i < count; ++i) {
    const Value byte = b.casted(sliced(b, bytes, 1, column + i, 1), kind);
    const Value placed = i == 0 ? byte : b.shiftLeft(byte, b.scalar(kind, 8.0 * i));
    number = number ? b.bitOr(number, placed) : placed;
  }
  return number;
}

Value scaled(Builder& b, Value x, Value scale, Value bias) {
  return b.add(b.mul(b.casted(x, ElemKind::Float32), scale), bias);
}

void checkTable(Value rows, int64_t extra) {
  if (rows.rank() != 2 || rows.kind() != ElemKind::UInt8 || rows.dim(1) < extra)
    fail(Code::BadNode,
         fmt::format("expected a table of bytes with {} more after the elements, got {}", extra, rows.type().text()));
}

// Elements of 8 bits, then scale and bias as f32.
Value decoded8(Builder& b, Value rows) {
  checkTable(rows, 8);
  const int64_t width = rows.dim(1) - 8;
  const auto real = [&](int64_t column) {
    return b.bitcast(numberAt(b, rows, column, 4, ElemKind::UInt32), {.to = ElemKind::Float32});
  };
  return scaled(b, sliced(b, rows, 1, 0, width), real(width), real(width + 4));
}

// Several elements a byte, low bits first, then scale and bias as f16.
Value decodedNarrow(Builder& b, Value rows, int bits) {
  checkTable(rows, 4);
  const int64_t width = rows.dim(1) - 4;
  const auto real = [&](int64_t column) {
    const Value half = b.bitcast(numberAt(b, rows, column, 2, ElemKind::UInt16), {.to = ElemKind::Float16});
    return b.casted(half, ElemKind::Float32);
  };
  const Value bytes = sliced(b, rows, 1, 0, width), mask = b.scalar(ElemKind::UInt8, (1 << bits) - 1);
  std::vector<Value> parts;
  for (int shift = 0; shift < 8; shift += bits) {
    const Value moved = shift == 0 ? bytes : b.shiftRight(bytes, b.scalar(ElemKind::UInt8, shift));
    parts.push_back(unsqueezed(b, b.bitAnd(moved, mask), 2));
  }
  const Value elements = b.reshaped(b.concat(parts, {.axis = 2}), {rows.dim(0), width * (8 / bits)});
  return scaled(b, elements, real(width), real(width + 2));
}

enum class Stored : uint8_t { Plain, Fused8, Fused4, Fused2, Beside8 };

Value decoded(Builder& b, Value rows, Stored stored) {
  switch (stored) {
    case Stored::Fused8:
      return decoded8(b, rows);
    case Stored::Fused4:
      return decodedNarrow(b, rows, 4);
    case Stored::Fused2:
      return decodedNarrow(b, rows, 2);
    default:
      return isFloat(rows.kind()) ? b.casted(rows, wideKind(rows.kind())) : rows;
  }
}

enum class Weights : uint8_t { None, PerIndex, PerPlace };
enum class Combine : uint8_t { Sum, Mean, Max };

// Operands: table, weights if any, indices, lengths, and a table of scales and biases if it lies beside.
template <Stored S, Weights W, Combine C>
void lookup(OpImport& c) {
  Builder& b = c.b;
  constexpr int kFirst = W == Weights::None ? 1 : 2;
  const Value table = c.in(0), picked = indices(c, kFirst);
  checkVector(picked, "indices");
  if (table.rank() < 1) fail(Code::BadNode, fmt::format("expected a table of rows, got {}", table.type().text()));
  Value rows = b.gather(table, picked);
  if (S == Stored::Beside8) {
    const Value beside = b.gather(c.in(kFirst + 2), picked);
    if (beside.rank() != 2 || beside.dim(1) != 2 || rows.rank() != 2)
      fail(Code::BadNode, fmt::format("expected a matrix with a scale and a bias for each of its rows, got {} and {}",
                                      table.type().text(), c.in(kFirst + 2).type().text()));
    rows = scaled(b, rows, sliced(b, beside, 1, 0, 1), sliced(b, beside, 1, 1, 1));
  } else {
    rows = decoded(b, rows, S);
  }
  const Segments segments(b, indices(c, kFirst + 1), picked.dim(0));
  if (W != Weights::None) {
    Value weights = c.in(1);
    checkVector(weights, "weights");
    if (W == Weights::PerPlace) weights = b.gather(weights, segments.places());
    if (weights.dim(0) < picked.dim(0))
      fail(Code::BadNode,
           fmt::format("expected a weight for each of {} indices, got {}", picked.dim(0), weights.type().text()));
    weights = sliced(b, weights, 0, 0, picked.dim(0));  // there may be more than are used
    rows = b.mul(rows, perRow(b, b.casted(weights, rows.kind()), rows));
  }
  c.out(C == Combine::Mean ? segments.mean(rows) : segments.combined(rows, C == Combine::Max ? "max" : "add"));
}

template <Stored S>
void decode(OpImport& c) {
  c.out(decoded(c.b, c.in(0), S));
}
template <Stored S>
void decodeToHalf(OpImport& c) {
  c.out(c.b.casted(decoded(c.b, c.in(0), S), ElemKind::Float16));
}

// The bytes of a number a row, [rows, count], low byte first.
Value bytesOf(Builder& b, Value bits, int count) {
  const ElemKind kind = bits.kind();
  std::vector<Value> bytes;
  for (int i = 0; i < count; ++i) {
    const Value moved = i == 0 ? bits : b.shiftRight(bits, b.scalar(kind, 8.0 * i));
    bytes.push_back(b.casted(b.bitAnd(moved, b.scalar(kind, 255)), ElemKind::UInt8));
  }
  return b.concat(bytes, {.axis = 1});
}

void encode8(OpImport& c) {
  Builder& b = c.b;
  const Value x = b.casted(c.in(0), ElemKind::Float32);
  if (x.rank() != 2) fail(Code::BadNode, fmt::format("expected a matrix, got {}", x.type().text()));
  const Value low = b.reduced(x, "min", {1}), width = b.sub(b.reduced(x, "max", {1}), low);
  const Value levels = b.scalarLike(x, 255);
  const Value inverse = b.div(levels, b.add(width, b.scalarLike(x, 1e-8)));
  const Value elements = b.casted(b.round(b.mul(b.sub(x, low), inverse)), ElemKind::UInt8);
  const auto stored = [&](Value v) { return bytesOf(b, b.bitcast(v, {.to = ElemKind::UInt32}), 4); };
  c.out(b.concat({elements, stored(b.div(width, levels)), stored(low)}, {.axis = 1}));
}

}  // namespace

std::span<const OpRow> embeddingRows() {
  using enum Stored;
  static constexpr OpRow rows[] = {
      row("SparseLengthsSum", lookup<Plain, Weights::None, Combine::Sum>),
      row("SparseLengthsMean", lookup<Plain, Weights::None, Combine::Mean>),
      row("SparseLengthsMax", lookup<Plain, Weights::None, Combine::Max>),
      row("SparseLengthsWeightedSum", lookup<Plain, Weights::PerIndex, Combine::Sum>),
      row("SparseLengthsPositionalWeightedSum", lookup<Plain, Weights::PerPlace, Combine::Sum>),
      row("SparseLengthsSum8BitsRowwise", lookup<Beside8, Weights::None, Combine::Sum>),
      row("SparseLengthsMean8BitsRowwise", lookup<Beside8, Weights::None, Combine::Mean>),
      row("SparseLengthsWeightedSum8BitsRowwise", lookup<Beside8, Weights::PerIndex, Combine::Sum>),
      row("SparseLengthsWeightedMean8BitsRowwise", lookup<Beside8, Weights::PerIndex, Combine::Mean>),
      row("SparseLengthsSumFused8BitRowwise", lookup<Fused8, Weights::None, Combine::Sum>),
      row("SparseLengthsMeanFused8BitRowwise", lookup<Fused8, Weights::None, Combine::Mean>),
      row("SparseLengthsWeightedSumFused8BitRowwise", lookup<Fused8, Weights::PerIndex, Combine::Sum>),
      row("SparseLengthsSumFused4BitRowwise", lookup<Fused4, Weights::None, Combine::Sum>),
      row("SparseLengthsMeanFused4BitRowwise", lookup<Fused4, Weights::None, Combine::Mean>),
      row("SparseLengthsWeightedSumFused4BitRowwise", lookup<Fused4, Weights::PerIndex, Combine::Sum>),
      row("SparseLengthsSumFused2BitRowwise", lookup<Fused2, Weights::None, Combine::Sum>),
      row("SparseLengthsMeanFused2BitRowwise", lookup<Fused2, Weights::None, Combine::Mean>),
      row("SparseLengthsWeightedSumFused2BitRowwise", lookup<Fused2, Weights::PerIndex, Combine::Sum>),
      row("Fused8BitRowwiseQuantizedToFloat", decode<Fused8>),
      row("Fused8BitRowwiseQuantizedToHalfFloat", decodeToHalf<Fused8>),
      row("Fused4BitRowwiseQuantizedToFloat", decode<Fused4>),
      row("Fused4BitRowwiseQuantizedToHalf", decodeToHalf<Fused4>),
      row("Fused2BitRowwiseQuantizedToFloat", decode<Fused2>),
      row("Fused2BitRowwiseQuantizedToHalf", decodeToHalf<Fused2>),
      row("FloatToFused8BitRowwiseQuantized", encode8),
      row("HalfFloatToFused8BitRowwiseQuantized", encode8),
  };
  return rows;
}

}  // namespace aglow::caffe2
