#include "tensor/slices.h"

#include <algorithm>
#include <cstring>

namespace aglow {

namespace {

// A tensor as rows of equal pieces around an axis: `outer` times `extent` pieces of `bytes`.
struct Pieces {
  int64_t outer = 1;
  int64_t bytes = 1;
};

Pieces piecesAround(const Type& type, int64_t axis, int64_t skipped) {
  Pieces pieces{.outer = 1, .bytes = elemBytes(type.kind())};
  const std::vector<int64_t>& dims = type.shape().dims();
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int64_t>(i) < axis) pieces.outer *= dims[i];
    if (static_cast<int64_t>(i) >= axis + skipped) pieces.bytes *= dims[i];
  }
  return pieces;
}

}  // namespace

Tensor sliceOf(const Tensor& tensor, int64_t axis, int64_t index) {
  std::vector<int64_t> dims = tensor.type().shape().dims();
  AGLOW_CHECK(axis >= 0 && axis < std::ssize(dims), "an axis that is not there");
  const int64_t extent = dims[static_cast<size_t>(axis)];
  AGLOW_CHECK(index >= 0 && index < extent, "an index that is not there");
  const Pieces pieces = piecesAround(tensor.type(), axis, 1);
  dims.erase(dims.begin() + axis);
  Type type(tensor.type().kind(), Shape(dims));
  if (pieces.outer == 1)
    return {std::move(type), tensor.data() + index * pieces.bytes, std::make_shared<Tensor>(tensor)};
  Tensor slice(std::move(type));
  std::byte* to = slice.mutableData();
  for (int64_t i = 0; i < pieces.outer; ++i)
    std::memcpy(to + i * pieces.bytes, tensor.data() + (i * extent + index) * pieces.bytes,
                static_cast<size_t>(pieces.bytes));
  return slice;
}

Tensor stretchOf(const Tensor& tensor, int64_t axis, int64_t begin, int64_t count) {
  std::vector<int64_t> dims = tensor.type().shape().dims();
  AGLOW_CHECK(axis >= 0 && axis < std::ssize(dims), "an axis that is not there");
  const int64_t extent = dims[static_cast<size_t>(axis)];
  AGLOW_CHECK(begin >= 0 && count >= 0 && begin <= extent - count, "indices that are not there");
  const Pieces pieces = piecesAround(tensor.type(), axis, 1);
  dims[static_cast<size_t>(axis)] = count;
  Type type = tensor.type().withShape(Shape(dims));
  if (pieces.outer == 1)
    return {std::move(type), tensor.data() + begin * pieces.bytes, std::make_shared<Tensor>(tensor)};
  Tensor stretch(std::move(type));
  std::byte* to = stretch.mutableData();
  for (int64_t i = 0; i < pieces.outer; ++i)
    std::memcpy(to + i * count * pieces.bytes, tensor.data() + (i * extent + begin) * pieces.bytes,
                static_cast<size_t>(count * pieces.bytes));
  return stretch;
}

Tensor stacked(std::span<const Tensor> tensors, int64_t axis) {
  AGLOW_CHECK(!tensors.empty(), "nothing to stack");
  const Type& each = tensors.front().type();
  const auto count = static_cast<int64_t>(tensors.size());
  std::vector<int64_t> dims = each.shape().dims();
  const Pieces pieces = piecesAround(each, axis, 0);
  dims.insert(dims.begin() + axis, count);
  Tensor all(Type(each.kind(), Shape(dims)));
  std::byte* to = all.mutableData();
  for (int64_t k = 0; k < count; ++k) {
    const Tensor& tensor = tensors[static_cast<size_t>(k)];
    AGLOW_CHECK(tensor.type() == each, "stacking different types");
    for (int64_t i = 0; i < pieces.outer; ++i)
      std::memcpy(to + (i * count + k) * pieces.bytes, tensor.data() + i * pieces.bytes,
                  static_cast<size_t>(pieces.bytes));
  }
  return all;
}

Tensor resized(const Tensor& tensor, const std::vector<int64_t>& dims) {
  const Shape& from = tensor.type().shape();
  AGLOW_CHECK(std::ssize(dims) == from.rank(), "resizing to another rank");
  Tensor result(Type(tensor.type().kind(), Shape(dims)));
  if (dims.empty()) std::memcpy(result.mutableData(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  if (dims.empty()) return result;
  const std::vector<int64_t> fromStrides = from.strides(), toStrides = result.type().shape().strides();
  const int64_t unit = elemBytes(tensor.type().kind());
  std::byte* const to = result.mutableData();
  const auto copy = [&](auto&& self, size_t axis, int64_t source, int64_t target) -> void {
    const int64_t extent = std::min(dims[axis], from.dims()[axis]);
    if (axis + 1 == dims.size()) {
      std::memcpy(to + target * unit, tensor.data() + source * unit, static_cast<size_t>(extent * unit));
      return;
    }
    for (int64_t i = 0; i < extent; ++i)
      self(self, axis + 1, source + i * fromStrides[axis], target + i * toStrides[axis]);
  };
  copy(copy, 0, 0, 0);
  return result;
}

}  // namespace aglow
