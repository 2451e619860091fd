// Pools over windows and over whole images.
#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/op_window.h"
#include "support/sizes.h"

namespace aglow::onnx {

namespace {

// The result's extents where windows may reach beyond the padded end; none where whole windows are asked for.
std::vector<int64_t> ceiledSizes(const OpImport& c, const WindowAttrs& window, Value x) {
  std::vector<int64_t> sizes;
  if (!c.flag("ceil_mode")) return sizes;
  for (size_t i = 0; i < window.axes(); ++i) {
    const int64_t extent = x.dim(static_cast<int>(i) + 2), begin = extent + window.pads[i];
    const int64_t padded = begin + window.pads[window.axes() + i];
    int64_t size = ceilDiv(padded - window.reach(i), window.strides[i]) + 1;
    // A window that holds nothing but padding of the end is none.
    if ((size - 1) * window.strides[i] >= begin) --size;
    sizes.push_back(size);
  }
  return sizes;
}

// Flat indices that count rows first, as indices that count columns first in each image.
Value columnMajor(Builder& b, Value indices, Value x) {
  const auto number = [&](int64_t value) { return b.scalar(ElemKind::Int64, static_cast<double>(value)); };
  const int rank = x.rank();
  const Value inside = b.rem(indices, number(product(x.shape(), 2, rank)));
  Value result = b.sub(indices, inside);
  for (int axis = 2; axis < rank; ++axis) {
    const Value at = b.rem(b.div(inside, number(product(x.shape(), axis + 1, rank))), number(x.dim(axis)));
    result = b.add(result, b.mul(at, number(product(x.shape(), 2, axis))));
  }
  return result;
}

void maxPool(OpImport& c) {
  const Value x = c.in(0);
  const WindowAttrs window = readPoolWindow(c, x);
  const std::vector<int64_t> sizes = ceiledSizes(c, window, x);
  const bool columnsFirst = c.flag("storage_order");
  if (!c.wants(1))
    return c.out(c.b.maxPool(x, {.kernel = window.kernel,
                                 .strides = window.strides,
                                 .pads = window.pads,
                                 .dilations = window.dilations,
                                 .sizes = sizes}));
  aglow::Node* node = c.b.maxPoolWithIndices(x, {.kernel = window.kernel,
                                                 .strides = window.strides,
                                                 .pads = window.pads,
                                                 .dilations = window.dilations,
                                                 .sizes = sizes});
  c.out(0, node->result(0));
  c.out(1, columnsFirst ? columnMajor(c.b, node->result(1), x) : node->result(1));
}

void averagePool(OpImport& c) {
  const Value x = c.in(0);
  const WindowAttrs window = readPoolWindow(c, x);
  c.out(c.b.avgPool(x, {.kernel = window.kernel,
                        .strides = window.strides,
                        .pads = window.pads,
                        .dilations = window.dilations,
                        .sizes = ceiledSizes(c, window, x),
                        .countIncludePad = c.flag("count_include_pad")}));
}

int64_t normOrder(const OpImport& c) {
  const int64_t p = c.integer("p", 2);
  if (p < 1) fail(Code::BadNode, fmt::format("expected 'p' to be at least 1, got {}", p));
  return p;
}

Value power(Builder& b, Value x, int64_t p) {
  if (p == 1) return b.abs(x);
  return p == 2 ? b.mul(x, x) : b.pow(b.abs(x), b.scalarLike(x, static_cast<double>(p)));
}

Value root(Builder& b, Value x, int64_t p) {
  if (p == 1) return x;
  return p == 2 ? b.sqrt(x) : b.pow(x, b.scalarLike(x, 1 / static_cast<double>(p)));
}

void lpPool(OpImport& c) {
  const Value x = c.in(0);
  const int64_t p = normOrder(c);
  const WindowAttrs window = readPoolWindow(c, x);
  const std::vector<int64_t> sizes = ceiledSizes(c, window, x);
  // With all padding as true zeros, a sum is the mean times the number of taps.
  std::vector<int64_t> before{0, 0}, after{0, 0};
  double taps = 1;
  for (size_t i = 0; i < window.axes(); ++i) {
    int64_t back = window.pads[window.axes() + i];
    if (!sizes.empty()) {
      const int64_t padded = x.dim(static_cast<int>(i) + 2) + window.pads[i];
      back = std::max<int64_t>((sizes[i] - 1) * window.strides[i] + window.reach(i) - padded, 0);
    }
    before.push_back(window.pads[i]);
    after.push_back(back);
    taps *= static_cast<double>(window.kernel[i]);
  }
  const Value powers = power(c.b, widened(c.b, x), p);
  const Value padded = paddedOrCropped(c.b, powers, before, after, c.b.scalarLike(powers, 0));
  const Value mean = c.b.avgPool(
      padded, {.kernel = window.kernel, .strides = window.strides, .dilations = window.dilations, .sizes = sizes});
  c.out(c.b.casted(root(c.b, c.b.mul(mean, c.b.scalarLike(mean, taps)), p), x.kind()));
}

Value image(const OpImport& c) {
  if (c.in(0).rank() < 2)
    fail(Code::BadNode, fmt::format("expected [batch, channel, spatial...], got {}", c.in(0).type().text()));
  return c.in(0);
}

void globalAveragePool(OpImport& c) {
  const Value x = image(c);
  c.out(c.b.reduced(x, "mean", range(2, x.rank())));
}

void globalMaxPool(OpImport& c) {
  const Value x = image(c);
  c.out(c.b.reduced(x, "max", range(2, x.rank())));
}

void globalLpPool(OpImport& c) {
  const Value x = image(c);
  const int64_t p = normOrder(c);
  const Value powers = power(c.b, widened(c.b, x), p);
  c.out(c.b.casted(root(c.b, c.b.reduced(powers, "sum", range(2, x.rank())), p), x.kind()));
}

void maxUnpool(OpImport& c) {
  const Value x = c.in(0), indices = c.in(1);
  const WindowAttrs window = readPoolWindow(c, x);
  if (indices.shape() != x.shape())
    fail(Code::BadNode,
         fmt::format("expected one index an element of {}, got {}", x.type().text(), indices.type().text()));
  std::vector<int64_t> dims{x.dim(0), x.dim(1)};
  for (size_t i = 0; i < window.axes(); ++i)
    dims.push_back((x.dim(static_cast<int>(i) + 2) - 1) * window.strides[i] + window.kernel[i] - window.pads[i] -
                   window.pads[window.axes() + i]);
  const Shape shape = shapeOf(dims);
  const Value zeros = c.b.splat({.elem = x.kind(), .shape = {shape.elements()}});
  const int64_t count = x.type().elements();
  const Value filled =
      c.b.reshaped(c.b.scatter(zeros, c.b.reshaped(indices, {count}), c.b.reshaped(x, {count})), shape.dims());
  if (!c.has(2)) return c.out(filled);
  // The indices count in the shape that pooling started from; what is asked for beyond it stays empty.
  const std::vector<int64_t> wanted = c.constantInts(2);
  if (wanted.size() != dims.size())
    fail(Code::BadNode, fmt::format("expected {} extents in 'output_shape', got {}", dims.size(), listText(wanted)));
  std::vector<int64_t> after;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto difference = checkedSub(wanted[i], dims[i]);
    if (!difference || *difference < 0)
      fail(Code::BadNode,
           fmt::format("expected an 'output_shape' of at least {}, got {}", shape.text(), listText(wanted)));
    after.push_back(*difference);
  }
  c.out(paddedOrCropped(c.b, filled, std::vector<int64_t>(dims.size(), 0), after, c.b.scalarLike(x, 0)));
}

}  // namespace

std::span<const OpRow> poolRows() {
  static constexpr OpRow rows[] = {
      {"MaxPool", maxPool},
      {"AveragePool", averagePool},
      {"LpPool", lpPool, 2},
      {"GlobalAveragePool", globalAveragePool},
      {"GlobalMaxPool", globalMaxPool},
      {"GlobalLpPool", globalLpPool, 2},
      {"MaxUnpool", maxUnpool},
  };
  return rows;
}

}  // namespace aglow::onnx
