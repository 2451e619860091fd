// Reading and writing at computed places, and sparse data made dense.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "import/caffe2/op_tables.h"
#include "import/caffe2/segments.h"

namespace aglow::caffe2 {

namespace {

void gather(OpImport& c) {
  const Value data = c.in(0);
  Imported result = c.operand(0);
  result.tensor = c.b.gather(data, indices(c, 1), {.axis = c.axis(intArg(c, "axis", 0), data.rank())});
  c.out(0, result);
}

void batchGather(OpImport& c) {
  const Value data = c.in(0);
  c.out(c.b.gather(data, indices(c, 1), {.axis = c.axis(intArg(c, "axis", 1), data.rank())}));
}

Value asRows(Builder& b, Value x, int64_t rows) {
  if (rows == 0 || x.type().elements() % rows != 0)
    fail(Code::BadNode, fmt::format("expected {} rows, got {}", rows, x.type().text()));
  return b.reshaped(x, {rows, x.type().elements() / rows});
}

// Only the number of elements counts, not the shape of what is written.
void scatterAssign(OpImport& c) {
  const Value data = c.in(0), places = indices(c, 1);
  if (data.rank() < 1) fail(Code::BadNode, fmt::format("expected rows, got {}", data.type().text()));
  const int64_t count = places.type().elements();
  const Value flat = c.b.reshaped(places, {count});
  if (count == 0) return c.out(data);
  const Value updates = asRows(c.b, c.in(2), count);
  const Value result = c.b.scatter(asRows(c.b, data, data.dim(0)), flat, updates);
  c.out(c.b.reshaped(result, data.shape().dims()));
}

// Ranges of data, [batch, range, (start, length)], one after the other; how many elements each item of the batch got.
void gatherRanges(OpImport& c) {
  const Value data = c.in(0), ranges = c.in(1);
  if (data.rank() < 1 || ranges.rank() != 3 || ranges.dim(2) != 2)
    fail(Code::BadNode, fmt::format("expected rows and ranges [batch, range, 2], got {} and {}", data.type().text(),
                                    ranges.type().text()));
  const std::vector<int64_t> numbers = c.constantInts(1);
  std::vector<int64_t> picked;
  for (size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i] < 0 || numbers[i + 1] < 0 || numbers[i] > data.dim(0) || numbers[i + 1] > data.dim(0) - numbers[i])
      fail(Code::BadNode, fmt::format("expected ranges within {}, got {} elements from {} on", data.type().text(),
                                      numbers[i + 1], numbers[i]));
    for (int64_t at = 0; at < numbers[i + 1]; ++at) picked.push_back(numbers[i] + at);
    if (picked.size() > size_t{1} << 27) fail(Code::TooLarge, "the ranges ask for too many elements");
  }
  c.out(0, c.b.gather(data, c.b.ints(picked)));
  const Value sizes = c.b.reduced(sliced(c.b, ranges, 2, 1, 1), "sum", {1, 2}, false);
  c.out(1, c.b.casted(sizes, ElemKind::Int32));
}

// One result a range: [batch, length], or zeros where an item of the batch has an empty range.
void gatherRangesToDense(OpImport& c) {
  Builder& b = c.b;
  const Value data = c.in(0), ranges = indices(c, 1);
  const std::vector<int64_t> lengths = intsArg(c, "lengths");
  if (c.has(2)) fail(Code::UnsupportedFeature, "GatherRangesToDense with keys is not supported");
  const auto count = static_cast<int64_t>(lengths.size());
  if (data.rank() != 1 || data.dim(0) < 1 || ranges.rank() != 3 || ranges.dim(1) != count || ranges.dim(2) != 2)
    fail(Code::BadNode, fmt::format("expected a vector and ranges [batch, {}, 2], got {} and {}", count,
                                    data.type().text(), ranges.type().text()));
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const int64_t length = shapeOf({lengths[static_cast<size_t>(i)]}).elements();
    const Value range = b.reshaped(sliced(b, ranges, 1, i, 1), {ranges.dim(0), 2});
    const Value empty = b.equal(sliced(b, range, 1, 1, 1), b.scalar(ElemKind::Int64, 0));
    const Value places = b.add(sliced(b, range, 1, 0, 1), iota(b, length, 1, 2));
    const Value inside = b.where(empty, b.scalar(ElemKind::Int64, 0), places);
    c.out(i, b.where(empty, b.scalarLike(data, 0), b.gather(data, inside)));
  }
}

// Values added up at their indices; as many rows as a third operand has, or as the largest index asks for.
void sparseToDense(OpImport& c) {
  const Value places = indices(c, 0), values = c.in(1);
  checkVector(places, "indices");
  if (values.rank() < 1 || values.dim(0) != places.dim(0))
    fail(Code::BadNode,
         fmt::format("expected a value for each of {}, got {}", places.type().text(), values.type().text()));
  int64_t count = intArg(c, "output_first_dim", 0);
  if (count == 0 && c.has(2)) {
    if (c.in(2).rank() < 1) fail(Code::BadNode, fmt::format("expected rows, got {}", c.in(2).type().text()));
    count = c.in(2).dim(0);
  } else if (count == 0) {
    for (const int64_t index : c.constantInts(0)) {
      if (index < 0 || index > (int64_t{1} << 48))
        fail(Code::BadNode, fmt::format("expected indices from 0 on, got {}", index));
      count = std::max(count, index + 1);
    }
  }
  c.out(combinedById(c.b, values, places, count, "add"));
}

// Values with an id, put where the mask lists the id: a row for each of the lengths, or one in all.
void sparseToDenseMask(OpImport& c) {
  Builder& b = c.b;
  const Value ids = indices(c, 0), values = c.in(1), otherwise = c.in(2);
  checkVector(ids, "ids");
  const std::vector<int64_t> mask = intsArg(c, "mask");
  if (mask.empty() || std::unordered_set<int64_t>(mask.begin(), mask.end()).size() != mask.size())
    fail(Code::BadNode, "expected ids, none of them twice, in argument 'mask'");
  std::vector<int64_t> inner = otherwise.shape().dims();
  if (values.rank() < 1 || values.dim(0) != ids.dim(0) ||
      values.type().elements() != ids.dim(0) * product(otherwise.shape(), 0, otherwise.rank()))
    fail(Code::BadNode, fmt::format("expected values like {} for each of {}, got {}", otherwise.type().text(),
                                    ids.type().text(), values.type().text()));
  const int64_t columns = static_cast<int64_t>(mask.size()), n = ids.dim(0);
  // Of each value: its column, or `columns` for ids that the mask does not list.
  const Value listed = b.equal(b.reshaped(ids, {n, 1}), b.ints(mask));
  const Value hit = b.reduced(listed, "max", {1}, false);
  const Value column = b.argReduce(b.casted(listed, ElemKind::Int32), {.axis = 1, .keepdims = false});
  Value row = b.splat({.elem = ElemKind::Int64, .shape = {n}});
  int64_t rows = 1;
  if (c.has(3)) {
    const Segments segments(b, indices(c, 3), n);
    row = segments.ids();
    rows = segments.count();
  }
  const int64_t cells = shapeOf({rows, columns}).elements();
  const auto number = [&](int64_t value) { return b.scalar(ElemKind::Int64, static_cast<double>(value)); };
  // One row more takes what has no place.
  const Value place = b.where(hit, b.add(b.mul(row, number(columns)), column), number(cells));
  const Value kept = b.clip(place, number(0), number(cells));
  std::vector<int64_t> dims = inner;
  dims.insert(dims.begin(), cells + 1);
  const Value start = b.expand(otherwise, {.shape = shapeOf(dims).dims()});
  std::vector<int64_t> valueDims = inner;
  valueDims.insert(valueDims.begin(), n);
  const Value filled = b.scatter(start, kept, b.reshaped(values, valueDims));
  std::vector<int64_t> shape{columns};
  if (c.has(3)) shape.insert(shape.begin(), rows);
  const std::vector<int64_t> outer = shape;
  shape.insert(shape.end(), inner.begin(), inner.end());
  c.out(0, b.reshaped(sliced(b, filled, 0, 0, cells), shape));
  if (!c.wants(1)) return;
  const Value counts = countedById(b, kept, cells + 1);
  const Value present = b.less(number(0), sliced(b, counts, 0, 0, cells));
  c.out(1, b.reshaped(present, outer));
}

// Rows of (index, value) pairs, as many as lengths tell, as rows of a dense matrix.
void batchSparseToDense(OpImport& c) {
  Builder& b = c.b;
  const Value places = indices(c, 1), values = c.in(2);
  checkVector(places, "indices");
  checkVector(values, "values");
  const Segments segments(b, indices(c, 0), places.dim(0));
  int64_t columns = intArg(c, "dense_last_dim", -1);
  if (c.has(3)) {
    if (c.in(3).rank() != 2) fail(Code::BadNode, fmt::format("expected a matrix, got {}", c.in(3).type().text()));
    columns = c.in(3).dim(1);
  }
  if (columns < 1 || values.shape() != places.shape())
    fail(Code::BadNode, fmt::format("expected a value for each index and 'dense_last_dim' of at least 1, got {}, {} "
                                    "and {}",
                                    places.type().text(), values.type().text(), columns));
  const int64_t rows = segments.count();
  const Value place = b.add(b.mul(segments.ids(), b.scalar(ElemKind::Int64, static_cast<double>(columns))), places);
  const int64_t total = shapeOf({rows + 1, columns}).elements();
  const Value start = b.splat({.value = realArg(c, "default_value", 0), .elem = values.kind(), .shape = {total}});
  const Value filled = b.reshaped(b.scatter(start, place, values), {rows + 1, columns});
  c.out(sliced(b, filled, 0, 0, rows));
}

// Rows where the indicator is set take the next row of data, the others are 0.
void fillExamples(OpImport& c) {
  Builder& b = c.b;
  const Value data = c.in(0), indicator = b.casted(c.in(1), ElemKind::Bool);
  checkVector(indicator, "flags");
  if (data.rank() < 1 || data.dim(0) < 1) fail(Code::BadNode, fmt::format("expected rows, got {}", data.type().text()));
  const Value order = b.scan(b.casted(indicator, ElemKind::Int64), {.axis = 0, .exclusive = true});
  const Value last = b.scalar(ElemKind::Int64, static_cast<double>(data.dim(0) - 1));
  const Value rows = b.gather(data, b.min(order, last));
  c.out(b.where(perRow(b, indicator, rows), rows, b.scalarLike(rows, 0)));
}

void oneHot(OpImport& c) {
  const Value places = indices(c, 0);
  checkVector(places, "indices");
  const int64_t width = shapeOf({c.constantInt(1)}).elements();
  c.out(c.b.equal(unsqueezed(c.b, places, 1), iota(c.b, width, 1, 2)));
}

// Columns, each compared with the values listed for it.
void batchOneHot(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0), values = c.in(2);
  checkVector(values, "values");
  if (x.rank() != 2) fail(Code::BadNode, fmt::format("expected a matrix, got {}", x.type().text()));
  const Segments segments(b, indices(c, 1), values.dim(0));
  if (segments.count() != x.dim(1))
    fail(Code::BadNode,
         fmt::format("expected a length for each column of {}, got {}", x.type().text(), c.in(1).type().text()));
  c.out(b.equal(b.gather(x, segments.ids(), {.axis = 1}), values));
}

}  // namespace

std::span<const OpRow> sparseRows() {
  static constexpr OpRow rows[] = {
      row("Gather", gather),
      row("BatchGather", batchGather),
      row("ScatterAssign", scatterAssign),
      row("GatherRanges", gatherRanges),
      row("GatherRangesToDense", gatherRangesToDense),
      row("SparseToDense", sparseToDense),
      row("SparseToDenseMask", sparseToDenseMask),
      row("BatchSparseToDense", batchSparseToDense),
      row("FillExamplesWithIndicator", fillExamples),
      row("OneHot", oneHot),
      row("BatchOneHot", batchOneHot),
  };
  return rows;
}

}  // namespace aglow::caffe2
