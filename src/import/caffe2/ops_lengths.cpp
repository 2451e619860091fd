// Operators on segments of rows that lengths or ids tell, and conversions between both.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "import/caffe2/op_tables.h"
#include "import/caffe2/segments.h"

namespace aglow::caffe2 {

namespace {

Value rowsOf(const OpImport& c, int operand) {
  const Value x = c.in(operand);
  if (x.rank() < 1) fail(Code::BadNode, fmt::format("expected rows in input {}, got {}", operand, x.type().text()));
  return x;
}

constexpr char kAdd[] = "add", kMax[] = "max", kMean[] = "mean";

template <const char* Kind>
void lengthsReduce(OpImport& c) {
  const Value rows = rowsOf(c, 0);
  const Segments segments(c.b, indices(c, 1), rows.dim(0));
  c.out(std::string_view(Kind) == kMean ? segments.mean(rows) : segments.combined(rows, Kind));
}

void lengthsWeightedSum(OpImport& c) {
  const Value rows = rowsOf(c, 0);
  const Segments segments(c.b, indices(c, 2), rows.dim(0));
  c.out(segments.combined(c.b.mul(rows, perRow(c.b, c.in(1), rows)), kAdd));
}

// As many results as the largest id asks for: the ids must be known when compiling.
int64_t largestId(OpImport& c, int operand) {
  const std::vector<int64_t> ids = c.constantInts(operand);
  int64_t largest = -1;
  for (const int64_t id : ids) {
    if (id < 0 || id > (int64_t{1} << 48)) fail(Code::BadNode, fmt::format("expected ids from 0 on, got {}", id));
    largest = std::max(largest, id);
  }
  return largest;
}

Value combinedOrMean(Builder& b, Value rows, Value ids, int64_t count, const std::string& kind) {
  if (kind != kMean) return combinedById(b, rows, ids, count, kind);
  const Value sum = combinedById(b, rows, ids, count, kAdd);
  const Value size = b.max(countedById(b, ids, count), b.scalar(ElemKind::Int64, 1));
  return b.div(sum, perRow(b, b.casted(size, rows.kind()), sum));
}

template <const char* Kind, bool Sparse>
void segmentReduce(OpImport& c) {
  constexpr int kIds = Sparse ? 2 : 1;
  Value rows = rowsOf(c, 0);
  if (Sparse) rows = c.b.gather(rows, indices(c, 1));
  const Value ids = indices(c, kIds);
  if (ids.shape() != Shape{rows.dim(0)})
    fail(Code::BadNode,
         fmt::format("expected an id for each row of {}, got {}", rows.type().text(), ids.type().text()));
  const int64_t wanted = intArg(c, "num_segments", -1);
  c.out(combinedOrMean(c.b, rows, ids, wanted >= 0 ? wanted : largestId(c, kIds) + 1, Kind));
}

// [segment, 2]: where each starts, and its length.
void lengthsToRanges(OpImport& c) {
  const Value lengths = c.in(0);
  checkVector(lengths, "lengths");
  const Value starts = c.b.scan(lengths, {.axis = 0, .exclusive = true});
  c.out(c.b.concat({unsqueezed(c.b, starts, 1), unsqueezed(c.b, lengths, 1)}, {.axis = 1}));
}

// How many rows all segments have together; lengths must be known when compiling, as a result's extent.
int64_t totalOf(OpImport& c, int operand) {
  checkVector(c.in(operand), "lengths");
  constexpr int64_t kMost = int64_t{1} << 32;
  int64_t total = 0;
  for (const int64_t length : c.constantInts(operand)) {
    if (length < 0 || length > kMost || total > kMost)
      fail(Code::BadNode, fmt::format("expected lengths from 0 on, got {}", length));
    total += length;
  }
  return total;
}

void lengthsRangeFill(OpImport& c) {
  const Segments segments(c.b, indices(c, 0), totalOf(c, 0));
  c.out(c.b.casted(segments.places(), c.in(0).kind()));
}

void lengthsToSegmentIds(OpImport& c) {
  const Segments segments(c.b, indices(c, 0), totalOf(c, 0));
  c.out(c.b.casted(segments.ids(), c.in(0).kind()));
}

void lengthsToWeights(OpImport& c) {
  Builder& b = c.b;
  const Segments segments(b, indices(c, 0), totalOf(c, 0));
  const Value length = b.casted(b.gather(segments.lengths(), segments.ids()), ElemKind::Float32);
  c.out(b.reciprocal(b.pow(length, b.scalarLike(length, realArg(c, "power", 0.5)))));
}

void lengthsTile(OpImport& c) {
  const Segments segments(c.b, indices(c, 1), totalOf(c, 1));
  c.out(c.b.gather(rowsOf(c, 0), segments.ids()));
}

// Whole segments of rows, in the order that indices name them.
void lengthsGather(OpImport& c) {
  const Value items = rowsOf(c, 0);
  const std::vector<int64_t> lengths = c.constantInts(1), wanted = c.constantInts(2);
  std::vector<int64_t> starts{0}, picked;
  for (const int64_t length : lengths) {
    if (length < 0 || length > items.dim(0) - starts.back())
      fail(Code::BadNode, fmt::format("expected lengths that fit {}, got {}", items.type().text(), listText(lengths)));
    starts.push_back(starts.back() + length);
  }
  for (const int64_t i : wanted) {
    if (i < 0 || i >= static_cast<int64_t>(lengths.size()))
      fail(Code::BadNode, fmt::format("expected indices below {}, got {}", lengths.size(), i));
    for (int64_t at = starts[static_cast<size_t>(i)]; at < starts[static_cast<size_t>(i) + 1]; ++at)
      picked.push_back(at);
    if (picked.size() > size_t{1} << 27) fail(Code::TooLarge, "the indices ask for too many rows");
  }
  c.out(c.b.gather(items, c.b.ints(picked)));
}

// Segments of one length make a matrix of this shape.
void lengthsToShape(OpImport& c) {
  const Value lengths = c.in(0);
  checkVector(lengths, "lengths");
  if (lengths.dim(0) < 1) fail(Code::BadNode, fmt::format("expected lengths, got {}", lengths.type().text()));
  const Value count = c.b.constant(Tensor::of(Type(lengths.kind(), Shape{1}), std::vector<int64_t>{lengths.dim(0)}));
  c.out(c.b.concat({count, sliced(c.b, lengths, 0, 0, 1)}, {.axis = 0}));
}

void segmentIdsToLengths(OpImport& c) {
  const Value ids = indices(c, 0);
  checkVector(ids, "ids");
  // A second operand has as many rows as there are segments.
  const int64_t count = c.has(1) ? rowsOf(c, 1).dim(0) : largestId(c, 0) + 1;
  c.out(c.b.casted(countedById(c.b, ids, count), ElemKind::Int32));
}

void segmentIdsToRanges(OpImport& c) {
  const Value ids = indices(c, 0);
  checkVector(ids, "ids");
  const int64_t count = c.has(1) ? rowsOf(c, 1).dim(0) : largestId(c, 0) + 1;
  const Value lengths = countedById(c.b, ids, count), starts = c.b.scan(lengths, {.axis = 0, .exclusive = true});
  const Value ranges = c.b.concat({unsqueezed(c.b, starts, 1), unsqueezed(c.b, lengths, 1)}, {.axis = 1});
  c.out(c.b.casted(ranges, ElemKind::Int32));
}

// The k largest of each segment with their places in it; segments shorter than k are filled with 0 and -1.
void lengthsTopK(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  checkVector(x, "values");
  const int64_t k = intArg(c, "k");
  const Segments segments(b, indices(c, 1), x.dim(0));
  const int64_t count = segments.count();
  if (k < 1 || k > (1 << 24)) fail(Code::BadNode, fmt::format("expected 'k' of at least 1, got {}", k));
  // A row of all values a segment, with those of others as low as can be; as long as k at least.
  const Value low = b.scalarLike(x, -std::numeric_limits<float>::infinity());
  const Value own = b.equal(b.reshaped(segments.ids(), {1, x.dim(0)}), iota(b, count, 0, 2));
  Value table = b.where(own, b.reshaped(x, {1, x.dim(0)}), low);
  if (k > x.dim(0)) table = b.pad(table, low, {.before = {0, 0}, .after = {0, k - x.dim(0)}});
  aglow::Node* best = b.topK(table, {.k = k, .axis = 1});
  const Value there = b.less(iota(b, k, 1, 2), b.reshaped(segments.lengths(), {count, 1}));
  const Value place = b.sub(best->result(1), b.reshaped(segments.starts(), {count, 1}));
  c.out(0, b.where(there, best->result(0), b.scalarLike(x, 0)));
  c.out(1, b.casted(b.where(there, place, b.scalar(ElemKind::Int64, -1)), ElemKind::Int32));
}

// Rows of a batch of sequences [step, batch, ...] in reverse, each as far as its length goes.
void reversePackedSegs(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), lengths = indices(c, 1);
  if (x.rank() < 2 || lengths.type().elements() != x.dim(1))
    fail(Code::BadNode, fmt::format("expected [step, batch, ...] and a length for each of the batch, got {} and {}",
                                    x.type().text(), lengths.type().text()));
  const Value place = iota(b, x.dim(0), 0, 2), length = b.reshaped(lengths, {1, x.dim(1)});
  const Value mirrored = b.sub(b.sub(length, b.scalar(ElemKind::Int64, 1)), place);
  const Value source = b.where(b.less(place, length), mirrored, place);
  // Rows of steps and batch as one axis, so that one index names both.
  const Value flat =
      b.add(b.mul(source, b.scalar(ElemKind::Int64, static_cast<double>(x.dim(1)))), iota(b, x.dim(1), 1, 2));
  std::vector<int64_t> rows(x.shape().dims().begin() + 1, x.shape().dims().end());
  rows.front() *= x.dim(0);
  c.out(b.gather(b.reshaped(x, rows), flat));
}

// Segments as rows of equal length [segment, place, ...], filled up after their ends.
void packSegments(OpImport& c) {
  Builder& b = c.b;
  const Value lengths = indices(c, 0), data = rowsOf(c, 1);
  const Segments segments(b, lengths, data.dim(0));
  int64_t longest = intArg(c, "max_length", -1);
  if (longest < 0) {
    longest = 0;
    for (const int64_t length : c.constantInts(0)) longest = std::max(longest, length);
  }
  const int64_t cells = shapeOf({segments.count(), longest}).elements();
  std::vector<int64_t> dims = data.shape().dims(), shape = dims;
  dims.front() = cells + 1;
  shape.front() = longest;
  shape.insert(shape.begin(), segments.count());
  const auto number = [&](int64_t value) { return b.scalar(ElemKind::Int64, static_cast<double>(value)); };
  const Value place = segments.places(), none = number(cells);
  // What is longer than the rows, or of no segment, goes to a cell of its own.
  const Value fits = b.logicalAnd(b.less(place, number(longest)), b.less(segments.ids(), number(segments.count())));
  const Value cell = b.where(fits, b.add(b.mul(segments.ids(), number(longest)), place), none);
  const double padding = flag(c, "pad_minf") ? -std::numeric_limits<double>::infinity() : 0;
  const Value start = b.splat({.value = padding, .elem = data.kind(), .shape = shapeOf(dims).dims()});
  c.out(0, b.reshaped(sliced(b, b.scatter(start, cell, data), 0, 0, cells), shape));
  if (c.wants(1)) c.out(1, b.less(iota(b, longest, 1, 2), b.reshaped(segments.lengths(), {segments.count(), 1})));
}

void unpackSegments(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(1);
  if (x.rank() < 2) fail(Code::BadNode, fmt::format("expected [segment, place, ...], got {}", x.type().text()));
  const Segments segments(b, indices(c, 0), totalOf(c, 0));
  std::vector<int64_t> rows(x.shape().dims().begin() + 1, x.shape().dims().end());
  rows.front() *= x.dim(0);
  const Value row = b.mul(segments.ids(), b.scalar(ElemKind::Int64, static_cast<double>(x.dim(1))));
  c.out(b.gather(b.reshaped(x, rows), b.add(row, segments.places())));
}

}  // namespace

std::span<const OpRow> lengthsRows() {
  static constexpr OpRow rows[] = {
      row("LengthsSum", lengthsReduce<kAdd>),
      row("LengthsMean", lengthsReduce<kMean>),
      row("LengthsMax", lengthsReduce<kMax>),
      row("LengthsWeightedSum", lengthsWeightedSum),
      row("SortedSegmentSum", segmentReduce<kAdd, false>),
      row("SortedSegmentMean", segmentReduce<kMean, false>),
      row("SortedSegmentRangeSum", segmentReduce<kAdd, false>),
      row("SortedSegmentRangeMean", segmentReduce<kMean, false>),
      row("SortedSegmentRangeMax", segmentReduce<kMax, false>),
      row("UnsortedSegmentSum", segmentReduce<kAdd, false>),
      row("UnsortedSegmentMean", segmentReduce<kMean, false>),
      row("SparseSortedSegmentSum", segmentReduce<kAdd, true>),
      row("SparseSortedSegmentMean", segmentReduce<kMean, true>),
      row("SparseUnsortedSegmentSum", segmentReduce<kAdd, true>),
      row("SparseUnsortedSegmentMean", segmentReduce<kMean, true>),
      row("LengthsToRanges", lengthsToRanges),
      row("LengthsRangeFill", lengthsRangeFill),
      row("LengthsToSegmentIds", lengthsToSegmentIds),
      row("LengthsToWeights", lengthsToWeights),
      row("LengthsTile", lengthsTile),
      row("LengthsGather", lengthsGather),
      row("LengthsToShape", lengthsToShape),
      row("LengthsTopK", lengthsTopK),
      row("ReversePackedSegs", reversePackedSegs),
      row("PackSegments", packSegments),
      row("UnpackSegments", unpackSegments),
      row("SegmentIdsToLengths", segmentIdsToLengths),
      row("SegmentIdsToRanges", segmentIdsToRanges),
  };
  return rows;
}

}  // namespace aglow::caffe2
