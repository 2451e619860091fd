#include "import/caffe2/segments.h"

#include <fmt/format.h>

#include <limits>

namespace aglow::caffe2 {

Value perRow(Builder& b, Value vector, Value rows) {
  std::vector<int64_t> dims(static_cast<size_t>(rows.rank()), 1);
  dims.front() = vector.type().elements();
  return b.reshaped(vector, std::move(dims));
}

Value countedById(Builder& b, Value ids, int64_t count) {
  const Value ones = b.splat({.value = 1, .elem = ElemKind::Int64, .shape = {ids.type().elements()}});
  return b.scatter(b.splat({.elem = ElemKind::Int64, .shape = {count}}), ids, ones, {.reduction = "add"});
}

Value combinedById(Builder& b, Value rows, Value ids, int64_t count, const std::string& reduction) {
  std::vector<int64_t> dims = rows.shape().dims();
  dims.front() = count;
  dims = shapeOf(std::move(dims)).dims();
  if (reduction == "add")
    return b.scatter(b.splat({.elem = rows.kind(), .shape = dims}), ids, rows, {.reduction = "add"});
  const double least =
      isFloat(rows.kind()) ? -std::numeric_limits<double>::infinity() : std::numeric_limits<int32_t>::min();
  const Value start = b.splat({.value = least, .elem = rows.kind(), .shape = dims});
  const Value largest = b.scatter(start, ids, rows, {.reduction = reduction});
  const Value empty = b.equal(perRow(b, countedById(b, ids, count), largest), b.scalar(ElemKind::Int64, 0));
  return b.where(empty, b.scalarLike(rows, 0), largest);
}

Segments::Segments(Builder& b, Value lengths, int64_t rows) : b_(b) {
  checkVector(lengths, "lengths");
  count_ = lengths.dim(0);
  lengths_ = b.casted(lengths, ElemKind::Int64);
  ends_ = b.scan(lengths_, {.axis = 0});
  // A row belongs to as many segments' ends as lie at or before it: marks at the ends, summed up.
  const Value last = b.scalar(ElemKind::Int64, static_cast<double>(rows)), zero = b.scalar(ElemKind::Int64, 0);
  const Value marks = countedById(b, b.clip(ends_, zero, last), rows + 1);
  ids_ = sliced(b, b.scan(marks, {.axis = 0}), 0, 0, rows);
}

Value Segments::starts() const { return b_.sub(ends_, lengths_); }

Value Segments::places() const {
  // Rows of no segment count from the end of the last.
  const Value none = b_.reshaped(b_.reduced(lengths_, "sum", {0}), {1});
  const Value starts = b_.concat({this->starts(), none}, {.axis = 0});
  return b_.sub(iota(b_, ids_.dim(0)), b_.gather(starts, ids_));
}

Value Segments::combined(Value rows, const std::string& reduction) const {
  return sliced(b_, combinedById(b_, rows, ids_, count_ + 1, reduction), 0, 0, count_);
}

Value Segments::mean(Value rows) const {
  const Value sum = combined(rows, "add");
  const Value size = b_.casted(b_.max(lengths_, b_.scalar(ElemKind::Int64, 1)), rows.kind());
  return b_.div(sum, perRow(b_, size, sum));
}

}  // namespace aglow::caffe2
