// Operators that fill borders, corners and tails: padding, cropping, triangles, reversed sequences.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "support/sizes.h"

namespace aglow::onnx {

namespace {

// Where the element at a place outside of [0, extent) comes from.
using Source = int64_t(int64_t at, int64_t extent);

int64_t floorMod(int64_t a, int64_t b) { return a - floorDiv(a, b) * b; }

int64_t edgeSource(int64_t at, int64_t extent) { return std::clamp<int64_t>(at, 0, extent - 1); }
int64_t wrapSource(int64_t at, int64_t extent) { return floorMod(at, extent); }
int64_t reflectSource(int64_t at, int64_t extent) {
  if (extent == 1) return 0;
  const int64_t period = 2 * (extent - 1), place = floorMod(at, period);
  return std::min(place, period - place);
}

// Padding by elements of x itself is a gather along each axis.
Value paddedFromInside(OpImport& c, Value x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                       Source* source) {
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t front = before[static_cast<size_t>(axis)], back = after[static_cast<size_t>(axis)];
    if (front == 0 && back == 0) continue;
    const int64_t extent = x.dim(axis);
    if (extent == 0)
      fail(Code::BadNode, fmt::format("expected elements along axis {} to pad with, got {}", axis, x.type().text()));
    const auto begin = checkedAdd(front, extent);
    const Shape result = shapeOf({begin ? checkedAdd(*begin, back).value_or(-1) : -1});
    constexpr int64_t kMost = int64_t{1} << 27;
    if (result.elements() > kMost)
      fail(Code::TooLarge, fmt::format("padding to {} elements exceeds the limit of {}", result.elements(), kMost));
    std::vector<int64_t> indices;
    for (int64_t at = -front; at < extent + back; ++at) indices.push_back(source(at, extent));
    x = c.b.gather(x, c.b.ints(indices), {.axis = axis});
  }
  return x;
}

void pad(OpImport& c) {
  const Value x = c.in(0);
  const auto rank = static_cast<size_t>(x.rank());
  const std::string mode = c.word("mode", "constant");
  const std::vector<int64_t> pads = c.version < 11 ? c.ints("pads") : c.constantInts(1);
  std::vector<int64_t> axes = range(0, x.rank());
  if (c.has(3)) {
    axes = c.constantInts(3);
    c.axes(axes, x.rank());  // none twice
  }
  if (pads.size() != 2 * axes.size())
    fail(Code::BadNode, fmt::format("expected {} pads, got {}", 2 * axes.size(), listText(pads)));
  std::vector<int64_t> before(rank, 0), after(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(c.axis(axes[i], x.rank()));
    before[axis] = pads[i];
    after[axis] = pads[axes.size() + i];
  }
  if (mode == "constant") {
    Value value = c.b.scalarLike(x, c.version < 11 ? c.real("value", 0) : 0);
    if (c.version >= 11 && c.has(2)) value = asScalar(c.b, c.in(2), "constant_value");
    return c.out(paddedOrCropped(c.b, x, before, after, value));
  }
  Source* source = mode == "edge"      ? edgeSource
                   : mode == "reflect" ? reflectSource
                   : mode == "wrap"    ? wrapSource
                                       : nullptr;
  if (source == nullptr)
    fail(Code::BadNode, fmt::format("expected 'mode' constant, reflect, edge or wrap, got '{}'", mode));
  std::vector<int64_t> cutFront = before, cutBack = after;
  for (size_t i = 0; i < rank; ++i) {
    cutFront[i] = std::min<int64_t>(before[i], 0);
    cutBack[i] = std::min<int64_t>(after[i], 0);
    before[i] -= cutFront[i];
    after[i] -= cutBack[i];
  }
  c.out(paddedFromInside(c, paddedOrCropped(c.b, x, cutFront, cutBack, Value{}), before, after, source));
}

void centerCropPad(OpImport& c) {
  const Value x = c.in(0);
  const std::vector<int64_t> wanted = c.constantInts(1), given = c.ints("axes", range(0, x.rank()));
  c.axes(given, x.rank());  // none twice
  if (wanted.size() != given.size())
    fail(Code::BadNode, fmt::format("expected {} extents in 'shape', got {}", given.size(), listText(wanted)));
  std::vector<int64_t> before(static_cast<size_t>(x.rank()), 0), after = before;
  for (size_t i = 0; i < given.size(); ++i) {
    const int64_t axis = c.axis(given[i], x.rank()), extent = x.dim(static_cast<int>(axis));
    if (wanted[i] < 0) fail(Code::BadNode, fmt::format("expected extents of 0 or more, got {}", listText(wanted)));
    const int64_t difference = wanted[i] - extent;
    before[static_cast<size_t>(axis)] = difference / 2;
    after[static_cast<size_t>(axis)] = difference - difference / 2;
  }
  c.out(paddedOrCropped(c.b, x, before, after, c.b.scalarLike(x, 0)));
}

void trilu(OpImport& c) {
  const Value x = c.in(0);
  if (x.rank() < 2) fail(Code::BadNode, fmt::format("expected matrices, got {}", x.type().text()));
  Value rows = iota(c.b, x.dim(x.rank() - 2), 0, 2);
  const Value columns = iota(c.b, x.dim(x.rank() - 1), 1, 2);
  if (c.has(1)) {
    const Value k = c.b.casted(asScalar(c.b, c.in(1), "k"), ElemKind::Int64);
    // Beyond the matrix all diagonals are alike, and a sum with a far one would wrap.
    const auto most = static_cast<double>(x.dim(x.rank() - 2) + x.dim(x.rank() - 1));
    rows = c.b.add(rows, c.b.clip(k, c.b.scalarLike(k, -most), c.b.scalarLike(k, most)));
  }
  const bool upper = c.flag("upper", true);
  const Value kept = upper ? c.b.lessOrEqual(rows, columns) : c.b.lessOrEqual(columns, rows);
  c.out(c.b.where(kept, x, c.b.scalarLike(x, 0)));
}

void reverseSequence(OpImport& c) {
  const Value x = c.in(0), lengths = c.in(1);
  const int64_t batchAxis = c.integer("batch_axis", 1), timeAxis = c.integer("time_axis", 0);
  if (x.rank() < 2 || batchAxis + timeAxis != 1 || batchAxis * timeAxis != 0)
    fail(Code::BadNode, fmt::format("expected 'batch_axis' and 'time_axis' 0 and 1 of {}, got {} and {}",
                                    x.type().text(), batchAxis, timeAxis));
  const int64_t batch = x.dim(static_cast<int>(batchAxis)), time = x.dim(static_cast<int>(timeAxis));
  if (lengths.shape() != Shape{batch})
    fail(Code::BadNode, fmt::format("expected {} lengths, got {}", batch, lengths.type().text()));
  std::vector<int64_t> perm = range(0, x.rank());
  std::swap(perm[0], perm[static_cast<size_t>(batchAxis)]);
  const Value rows = c.b.transposed(x, perm);
  const Value length = alongAxis(c.b, c.b.casted(lengths, ElemKind::Int64), 0, 2), place = iota(c.b, time, 1, 2);
  const Value last = c.b.sub(length, c.b.scalar(ElemKind::Int64, 1));
  // A length beyond the axis names an element outside of it, which the gather refuses.
  const Value source = c.b.where(c.b.less(place, length), c.b.sub(last, place), place);
  const Value reversed = c.b.gatherND(rows, c.b.reshaped(source, {batch, time, 1}), {.batchDims = 1});
  c.out(c.b.transposed(reversed, perm));
}

}  // namespace

std::span<const OpRow> padRows() {
  static constexpr OpRow rows[] = {
      {"Pad", pad, 2},
      {"CenterCropPad", centerCropPad},
      {"Trilu", trilu},
      {"ReverseSequence", reverseSequence},
  };
  return rows;
}

}  // namespace aglow::onnx
