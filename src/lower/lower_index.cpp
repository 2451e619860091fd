// Gathers and scatters with index tuples become flat ones: the tuples turn into row numbers by arithmetic. An entry
// outside of its axis turns into a row past the last one, so that the core operator refuses it.
#include "graph/op_views.h"
#include "lower/rules.h"

namespace aglow::lowering {

namespace {

int64_t product(const Shape& shape, int from, int to) {
  int64_t count = 1;
  for (int axis = from; axis < to; ++axis) count *= shape[axis];
  return count;
}

// 0, step, 2 * step ... along one axis of a tensor with `rank` axes, so that it broadcasts.
Value steps(Builder& b, int64_t count, int64_t step, int axis, int rank) {
  std::vector<int64_t> values(static_cast<size_t>(count)), dims(static_cast<size_t>(rank), 1);
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = i * step;
  dims[static_cast<size_t>(axis)] = count;
  return b.constant(Tensor::of(Type(ElemKind::Int64, Shape(std::move(dims))), values));
}

// Indices that count rows, each of them times the number of rows it skips. extents, skips and outside broadcast to
// indices; outside * skip is the number of all rows.
Value rowParts(Builder& b, Value indices, Value extents, Value skips, Value outside) {
  const Value zero = b.scalar(ElemKind::Int64, 0);
  const Value raw = b.casted(indices, ElemKind::Int64);
  const Value index = b.where(b.less(raw, zero), b.add(raw, extents), raw);
  const Value valid = b.logicalAnd(b.lessOrEqual(zero, index), b.less(index, extents));
  return b.mul(b.where(valid, index, outside), skips);
}

// The row numbers that tuples along the last axis of indices name in data, whose first `batch` axes go in step and
// whose next ones the tuples index.
Value tupleRows(Builder& b, const Shape& data, Value indices, int batch) {
  const int last = indices.rank() - 1;
  const int length = static_cast<int>(indices.dim(last));
  const int64_t rows = product(data, 0, batch + length);
  std::vector<int64_t> extents, skips, outside;
  for (int axis = batch; axis < batch + length; ++axis) {
    extents.push_back(data[axis]);
    skips.push_back(product(data, axis + 1, batch + length));
    outside.push_back(skips.back() == 0 ? 0 : rows / skips.back());
  }
  Value row = b.reduced(rowParts(b, indices, b.ints(extents), b.ints(skips), b.ints(outside)), "sum", {last}, false);
  for (int axis = 0; axis < batch; ++axis)
    row = b.add(row, steps(b, data[axis], product(data, axis + 1, batch + length), axis, last));
  return row;
}

// The flat positions of elements that lie at their own coordinates but for one axis, which indices give.
Value elementRows(Builder& b, const Shape& data, Value indices, int axis) {
  const int rank = data.rank();
  const int64_t skip = product(data, axis + 1, rank);
  const auto number = [&](int64_t value) {
    return b.constant(Tensor::of(Type(ElemKind::Int64, Shape{}), std::vector{value}));
  };
  Value row = rowParts(b, indices, number(data[axis]), number(skip), number(product(data, 0, axis + 1)));
  for (int a = 0; a < rank; ++a)
    if (a != axis && indices.dim(a) > 1)
      row = b.add(row, steps(b, indices.dim(a), product(data, a + 1, rank), a, rank));
  return row;
}

// data with its first axes as one.
Value asRows(Builder& b, Value data, int axes) {
  std::vector<int64_t> dims{product(data.shape(), 0, axes)};
  dims.insert(dims.end(), data.shape().dims().begin() + axes, data.shape().dims().end());
  return b.reshaped(data, std::move(dims));
}

Value scatterRows(Builder& b, Value data, int axes, Value rows, Value updates, const std::string& reduction) {
  const Value flat = asRows(b, data, axes);
  const Value result = b.scatter(flat, b.reshaped(rows, {rows.type().elements()}), asRows(b, updates, rows.rank()),
                                 {.reduction = reduction});
  return b.reshaped(result, data.shape().dims());
}

}  // namespace

std::vector<Value> gatherElements(Builder& b, Node& node) {
  const GatherElementsNode v(node);
  const Value rows = elementRows(b, v.data().shape(), v.indices(), static_cast<int>(v.axis()));
  return {b.gather(asRows(b, v.data(), v.data().rank()), rows)};
}

std::vector<Value> gatherND(Builder& b, Node& node) {
  const GatherNDNode v(node);
  const int batch = static_cast<int>(v.batchDims());
  const int axes = batch + static_cast<int>(v.indices().shape().dims().back());
  return {b.gather(asRows(b, v.data(), axes), tupleRows(b, v.data().shape(), v.indices(), batch))};
}

std::vector<Value> scatterElements(Builder& b, Node& node) {
  const ScatterElementsNode v(node);
  const Value rows = elementRows(b, v.data().shape(), v.indices(), static_cast<int>(v.axis()));
  return {scatterRows(b, v.data(), v.data().rank(), rows, v.updates(), v.reduction())};
}

std::vector<Value> scatterND(Builder& b, Node& node) {
  const ScatterNDNode v(node);
  const int axes = static_cast<int>(v.indices().shape().dims().back());
  return {scatterRows(b, v.data(), axes, tupleRows(b, v.data().shape(), v.indices(), 0), v.updates(), v.reduction())};
}

}  // namespace aglow::lowering
