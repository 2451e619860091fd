// Type rules of operators that read and write at computed places.
#include <fmt/format.h>

#include "ops/type_rules.h"
#include "ops/type_rules_support.h"

namespace aglow::infer {

namespace {

// The extents of `front` from its first axis to `to`, then those of `back` from axis `from`.
std::vector<int64_t> joined(const Shape& front, int to, const Shape& back, int from) {
  std::vector<int64_t> dims(front.dims().begin(), front.dims().begin() + to);
  dims.insert(dims.end(), back.dims().begin() + from, back.dims().end());
  return dims;
}

// Sums and products of truth values are not meant.
Status checkReduction(const InferContext& c) {
  const std::string& reduction = c.attrs.word("reduction");
  if (c.type(0).kind() != ElemKind::Bool || (reduction != "add" && reduction != "mul")) return {};
  return badNode(fmt::format("expected 'reduction' none, max or min for {}, got {}", c.type(0).text(), reduction));
}

// The elementwise forms: indices as large as data but for the axis, and nowhere beyond it.
Status checkElements(const InferContext& c) {
  const Type& data = c.type(0);
  const Type& indices = c.type(1);
  const int64_t axis = c.attrs.integer("axis");
  AGLOW_OK(checkAxis("axis", axis, data.shape()));
  bool fits = indices.rank() == data.rank();
  for (int a = 0; fits && a < data.rank(); ++a) fits = a == axis || indices.dim(a) <= data.dim(a);
  if (fits) return {};
  return badNode(fmt::format("expected 'indices' with the axes of {} and inside of it but for axis {}, got {}",
                             data.text(), axis, indices.text()));
}

// The length of an index tuple, checked against the axes it may name.
Result<int> tupleLength(const InferContext& c, int axes) {
  const Type& indices = c.type(1);
  const int64_t length = indices.dim(indices.rank() - 1);
  if (length >= 1 && length <= axes) return static_cast<int>(length);
  return badNode(fmt::format("expected index tuples of 1 to {} entries along the last axis of 'indices', got {}", axes,
                             indices.text()));
}

}  // namespace

Types gather(const InferContext& c) {
  const Type& data = c.type(0);
  const Shape& indices = c.type(1).shape();
  const int64_t axis = c.attrs.integer("axis");
  AGLOW_OK(checkAxis("axis", axis, data.shape()));
  std::vector<int64_t> dims = joined(data.shape(), static_cast<int>(axis), indices, 0);
  dims.insert(dims.end(), data.shape().dims().begin() + axis + 1, data.shape().dims().end());
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  QuantParams quant = data.quant();
  if (quant.scales.empty()) return std::vector{Type(data.kind(), std::move(shape))};
  if (quant.axis == axis)
    return badQuantization(
        fmt::format("expected an axis without scales of its own, got axis {} of {}", axis, data.text()));
  if (quant.axis > axis) quant.axis += indices.rank() - 1;
  AGLOW_TRY(Type type, Type::quantized(data.kind(), std::move(shape), std::move(quant)));
  return std::vector{std::move(type)};
}

Types gatherElements(const InferContext& c) {
  AGLOW_OK(checkElements(c));
  return std::vector{c.type(0).withShape(c.type(1).shape())};
}

Types gatherNd(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 1));
  AGLOW_OK(checkRank(c, 1, 1));
  const Type& data = c.type(0);
  const Type& indices = c.type(1);
  const int64_t batch = c.attrs.integer("batch_dims");
  if (batch < 0 || batch >= data.rank() || batch >= indices.rank())
    return badNode(fmt::format("expected 'batch_dims' from 0 to below the axes of {} and {}, got {}", data.text(),
                               indices.text(), batch));
  for (int axis = 0; axis < batch; ++axis)
    if (data.dim(axis) != indices.dim(axis))
      return badNode(fmt::format("expected equal extents along the first {} axes, got {} and {}", batch, data.text(),
                                 indices.text()));
  AGLOW_TRY(const int length, tupleLength(c, data.rank() - static_cast<int>(batch)));
  AGLOW_TRY(Shape shape,
            computedShape(joined(indices.shape(), indices.rank() - 1, data.shape(), static_cast<int>(batch) + length)));
  return std::vector{data.withShape(std::move(shape))};
}

Types scatter(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 1));
  const Type& data = c.type(0);
  const Type& indices = c.type(1);
  if (indices.rank() != 1) return badNode(fmt::format("expected a vector of 'indices', got {}", indices.text()));
  AGLOW_TRY(const Shape updates, computedShape(joined(indices.shape(), 1, data.shape(), 1)));
  AGLOW_OK(checkShape(c, 2, updates));
  AGLOW_OK(checkReduction(c));
  return std::vector{data};
}

Types scatterElements(const InferContext& c) {
  AGLOW_OK(checkElements(c));
  AGLOW_OK(checkShape(c, 2, c.type(1).shape()));
  AGLOW_OK(checkReduction(c));
  return std::vector{c.type(0)};
}

Types scatterNd(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 1));
  AGLOW_OK(checkRank(c, 1, 1));
  const Type& data = c.type(0);
  const Shape& indices = c.type(1).shape();
  AGLOW_TRY(const int length, tupleLength(c, data.rank()));
  AGLOW_TRY(const Shape updates, computedShape(joined(indices, indices.rank() - 1, data.shape(), length)));
  AGLOW_OK(checkShape(c, 2, updates));
  AGLOW_OK(checkReduction(c));
  return std::vector{data};
}

}  // namespace aglow::infer
