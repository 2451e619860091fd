#include "import/onnx/op_support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "support/sizes.h"

namespace aglow::onnx {

std::string listText(const std::vector<int64_t>& list) { return fmt::format("[{}]", fmt::join(list, ",")); }

int64_t product(const Shape& shape, int64_t from, int64_t to) {
  int64_t count = 1;
  for (int64_t axis = from; axis < to; ++axis) count *= shape[static_cast<int>(axis)];
  return count;
}

std::vector<int64_t> range(int64_t first, int64_t last) {
  std::vector<int64_t> list(static_cast<size_t>(std::max<int64_t>(last - first, 0)));
  std::iota(list.begin(), list.end(), first);
  return list;
}

Shape shapeOf(std::vector<int64_t> dims) {
  Result<Shape> shape = Shape::create(std::move(dims));
  if (!shape.ok()) fail(Code::BadNode, shape.error().message);
  return *shape;
}

Value iota(Builder& b, int64_t count, int64_t axis, int64_t rank, ElemKind kind) {
  constexpr int64_t kMost = int64_t{1} << 27;
  if (count > kMost) fail(Code::TooLarge, fmt::format("a list of {} indices exceeds the limit of {}", count, kMost));
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  if (rank > 0) dims[static_cast<size_t>(axis)] = count;
  return b.constant(Tensor::of(Type(kind, Shape(std::move(dims))), range(0, count)));
}

// An operand may have fewer axes than an operator works on.
static void checkAxis(Value x, int64_t axis, int64_t axes) {
  if (axis < 0 || axis >= axes)
    fail(Code::BadNode, fmt::format("expected at least {} axes, got {}", x.rank() + axis - axes + 1, x.type().text()));
}

Value sliced(Builder& b, Value x, int64_t axis, int64_t start, int64_t count, int64_t step) {
  checkAxis(x, axis, x.rank());
  if (start == 0 && step == 1 && count == x.dim(static_cast<int>(axis))) return x;
  const auto a = static_cast<size_t>(axis);
  SliceAttrs attrs{.starts = std::vector<int64_t>(static_cast<size_t>(x.rank()), 0), .sizes = x.shape().dims()};
  attrs.starts[a] = start;
  attrs.sizes[a] = count;
  if (step != 1) {
    attrs.steps.assign(attrs.starts.size(), 1);
    attrs.steps[a] = step;
  }
  return b.slice(x, attrs);
}

Value unsqueezed(Builder& b, Value x, int64_t axis) {
  checkAxis(x, axis, x.rank() + 1);
  std::vector<int64_t> dims = x.shape().dims();
  dims.insert(dims.begin() + axis, 1);
  return b.reshape(x, {.shape = std::move(dims)});
}

Value asScalar(Builder& b, Value x, std::string_view what) {
  if (x.type().elements() != 1)
    fail(Code::BadNode, fmt::format("expected one value for '{}', got {}", what, x.type().text()));
  return b.reshaped(x, {});
}

Value alongAxis(Builder& b, Value vector, int64_t axis, int64_t rank) {
  std::vector<int64_t> dims(static_cast<size_t>(rank - axis), 1);
  dims.front() = vector.type().elements();
  return b.reshaped(vector, std::move(dims));
}

Value paddedOrCropped(Builder& b, Value x, std::vector<int64_t> before, std::vector<int64_t> after, Value value) {
  std::vector<int64_t> starts, sizes;
  bool cut = false, grow = false;
  for (size_t i = 0; i < before.size(); ++i) {
    const int64_t extent = x.dim(static_cast<int>(i));
    const auto front = checkedAdd(extent, before[i]);
    const auto both = front ? checkedAdd(*front, after[i]) : front;
    if (!both || *both < 0 || before[i] < -extent || after[i] < -extent)
      fail(Code::BadNode, fmt::format("expected pads that leave a result along axis {} of {}, got {} and {}", i,
                                      x.type().text(), before[i], after[i]));
    starts.push_back(std::max<int64_t>(-before[i], 0));
    sizes.push_back(extent - starts.back() + std::min<int64_t>(after[i], 0));
    cut = cut || sizes.back() != extent;
    before[i] = std::max<int64_t>(before[i], 0);
    after[i] = std::max<int64_t>(after[i], 0);
    grow = grow || before[i] > 0 || after[i] > 0;
  }
  if (cut) x = b.slice(x, {.starts = starts, .sizes = sizes});
  return grow ? b.pad(x, value, {.before = std::move(before), .after = std::move(after)}) : x;
}

Value matrixProduct(Builder& b, Value x, Value y) {
  if (x.rank() == 0 || y.rank() == 0)
    fail(Code::BadNode, fmt::format("expected matrices or vectors, got {} and {}", x.type().text(), y.type().text()));
  const bool row = x.rank() == 1, column = y.rank() == 1;
  const Value product = b.matMul(row ? unsqueezed(b, x, 0) : x, column ? unsqueezed(b, y, 1) : y);
  std::vector<int64_t> dims = product.shape().dims();
  if (column) dims.pop_back();
  if (row) dims.erase(dims.end() - (column ? 1 : 2));
  return b.reshaped(product, std::move(dims));
}

ElemKind wideKind(ElemKind kind) { return isFloat(kind) && kind != ElemKind::Float64 ? ElemKind::Float32 : kind; }

}  // namespace aglow::onnx
