// Shapes and types: validity, broadcasting and text.
#include "tensor/type.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/sizes.h"

namespace aglow {

namespace {

// At 16 bytes each the elements fit into 62 bits.
constexpr int64_t kMaxElements = (int64_t{1} << 58) - 1;

std::string dimsText(const std::vector<int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

}  // namespace

Shape::Shape(std::vector<int64_t> dims) {
  Result<Shape> made = create(std::move(dims));
  AGLOW_CHECK(made.ok(), made.error().message);
  *this = *std::move(made);
}

Result<Shape> Shape::create(std::vector<int64_t> dims) {
  if (dims.size() > kMaxRank)
    return Error{Code::BadTensor, fmt::format("expected at most {} axes, got {}", kMaxRank, dims.size())};
  int64_t elements = 1;
  int64_t bound = 1;
  for (const int64_t dim : dims) {
    if (dim < 0) return Error{Code::BadTensor, fmt::format("shape {} has a negative extent", dimsText(dims))};
    const auto product = checkedMul(bound, std::max<int64_t>(dim, 1));
    if (!product || *product > kMaxElements)
      return Error{Code::BadTensor, fmt::format("shape {} has more elements than can be addressed", dimsText(dims))};
    bound = *product;
    elements *= dim;
  }
  Shape shape;
  shape.dims_ = std::move(dims);
  shape.elements_ = elements;
  return shape;
}

std::vector<int64_t> Shape::strides() const {
  std::vector<int64_t> strides(dims_.size());
  int64_t stride = 1;
  for (size_t axis = dims_.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= std::max<int64_t>(dims_[axis], 1);
  }
  return strides;
}

std::string Shape::text() const { return dimsText(dims_); }

Result<Shape> broadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) {
    const int axisA = axis - (rank - a.rank());
    const int axisB = axis - (rank - b.rank());
    const int64_t dimA = axisA < 0 ? 1 : a[axisA];
    const int64_t dimB = axisB < 0 ? 1 : b[axisB];
    if (dimA != dimB && dimA != 1 && dimB != 1)
      return Error{Code::BadNode, fmt::format("shapes {} and {} cannot be broadcast together: {} against {}", a.text(),
                                              b.text(), dimA, dimB)};
    dims[static_cast<size_t>(axis)] = dimA == 1 ? dimB : dimA;
  }
  return Shape::create(std::move(dims));
}

std::vector<int64_t> broadcastStrides(const Shape& from, const Shape& to) {
  const int missing = to.rank() - from.rank();
  AGLOW_CHECK(missing >= 0, fmt::format("{} has more axes than {}", from.text(), to.text()));
  const std::vector<int64_t> own = from.strides();
  std::vector<int64_t> strides(static_cast<size_t>(to.rank()), 0);
  for (int axis = 0; axis < from.rank(); ++axis) {
    const int64_t target = to[axis + missing];
    if (from[axis] == target) {
      strides[static_cast<size_t>(axis + missing)] = own[static_cast<size_t>(axis)];
    } else {
      AGLOW_CHECK(from[axis] == 1, fmt::format("{} does not stretch to {}", from.text(), to.text()));
    }
  }
  return strides;
}

namespace {

// The offsets a quantized kind may have are the values it can store.
bool offsetFits(ElemKind kind, int32_t offset) {
  const auto within = [offset](auto limits) { return offset >= limits.min() && offset <= limits.max(); };
  switch (kind) {
    case ElemKind::QInt8:
      return within(std::numeric_limits<int8_t>());
    case ElemKind::QUInt8:
      return within(std::numeric_limits<uint8_t>());
    case ElemKind::QInt16:
      return within(std::numeric_limits<int16_t>());
    default:
      return true;
  }
}

Status checkQuantization(ElemKind kind, const Shape& shape, const QuantParams& params) {
  const auto fault = [](std::string message) { return Error{Code::BadQuantization, std::move(message)}; };
  if (!isQuantized(kind)) return fault(fmt::format("{} is not a quantized kind", elemName(kind)));
  if (params.axis < -1 || params.axis >= shape.rank())
    return fault(fmt::format("quantization axis {} lies outside of shape {}", params.axis, shape.text()));
  const auto expected = params.axis < 0 ? size_t{1} : static_cast<size_t>(shape[params.axis]);
  if (params.scales.size() != expected || params.offsets.size() != expected)
    return fault(fmt::format("expected {} scales and offsets for shape {} with axis {}, got {} scales and {} offsets",
                             expected, shape.text(), params.axis, params.scales.size(), params.offsets.size()));
  for (const float scale : params.scales)
    if (!std::isfinite(scale) || scale <= 0)
      return fault(fmt::format("expected a positive and finite scale, got {}", scale));
  for (const int32_t offset : params.offsets)
    if (!offsetFits(kind, offset)) return fault(fmt::format("offset {} does not fit into {}", offset, elemName(kind)));
  return {};
}

}  // namespace

Result<Type> Type::quantized(ElemKind kind, Shape shape, QuantParams params) {
  AGLOW_OK(checkQuantization(kind, shape, params));
  Type type(kind, std::move(shape));
  type.quant_ = std::move(params);
  return type;
}

Type Type::withShape(Shape shape) const {
  const int axis = quant_.axis;
  AGLOW_CHECK(axis < 0 || (axis < shape.rank() && shape[axis] == shape_[axis]),
              fmt::format("{} cannot keep its scales in shape {}", text(), shape.text()));
  Type type(kind_, std::move(shape));
  type.quant_ = quant_;
  return type;
}

std::string Type::text() const {
  std::string out = fmt::format("{}{}", elemName(kind_), shape_.text());
  if (quant_.axis < 0 && quant_.scales.empty()) return out;
  out += quant_.axis < 0 ? "<" : fmt::format("<axis {}: ", quant_.axis);
  for (size_t i = 0; i < quant_.scales.size(); ++i)
    out += fmt::format("{}{}:{}", i == 0 ? "" : ", ", quant_.scales[i], quant_.offsets[i]);
  return out + ">";
}

}  // namespace aglow
