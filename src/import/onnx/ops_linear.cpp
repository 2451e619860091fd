// Matrix products, convolutions, determinants.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"
#include "import/onnx/op_window.h"

namespace aglow::onnx {

namespace {

void matMul(OpImport& c) { c.out(matrixProduct(c.b, c.in(0), c.in(1))); }

Value scaledBy(Builder& b, Value x, double factor) {
  if (factor == 1) return x;
  if (!isFloat(x.kind()) && factor != std::floor(factor))
    fail(Code::UnsupportedFeature, fmt::format("a factor of {} is not supported for {}", factor, x.type().text()));
  return b.mul(x, b.scalarLike(x, factor));
}

void gemm(OpImport& c) {
  const auto matrix = [&](int operand, std::string_view flag) {
    const Value x = c.in(operand);
    if (x.rank() != 2) fail(Code::BadNode, fmt::format("expected a matrix, got {}", x.type().text()));
    return c.flag(flag) ? c.b.transpose(x, {.perm = {1, 0}}) : x;
  };
  const Value product = c.b.matMul(matrix(0, "transA"), matrix(1, "transB"));
  Value y = scaledBy(c.b, product, c.real("alpha", 1));
  const double beta = c.real("beta", 1);
  if (c.has(2) && beta != 0) {
    const Result<Shape> common = broadcastShapes(product.shape(), c.in(2).shape());
    if (!common.ok() || *common != product.shape())
      fail(Code::BadNode, fmt::format("expected an operand C that broadcasts to {}, got {}", product.type().text(),
                                      c.in(2).type().text()));
    y = c.b.add(y, scaledBy(c.b, c.in(2), beta));
  }
  c.out(y);
}

void conv(OpImport& c) {
  const Value x = c.in(0), filter = c.in(1);
  const WindowAttrs window = readWindow(c, x, kernelOf(c, x, filter));
  c.out(c.b.conv(
      x, filter, c.optional(2),
      {.strides = window.strides, .pads = window.pads, .dilations = window.dilations, .group = c.integer("group", 1)}));
}

void convTranspose(OpImport& c) {
  const Value x = c.in(0), filter = c.in(1);
  WindowAttrs window = readWindow(c, x, kernelOf(c, x, filter));
  const size_t axes = window.axes();
  std::vector<int64_t> extra = c.ints("output_padding");
  if (extra.empty()) extra.assign(axes, 0);
  std::vector<int64_t> wanted = c.ints("output_shape");
  const bool same = window.autoPad == "SAME_UPPER" || window.autoPad == "SAME_LOWER";
  if (wanted.empty() && same)
    for (size_t i = 0; i < axes; ++i) wanted.push_back(x.dim(static_cast<int>(i) + 2) * window.strides[i]);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (extra.size() != axes || (!wanted.empty() && wanted.size() != axes) ||
      std::any_of(extra.begin(), extra.end(), [](int64_t e) { return e < 0 || e > kMost; }))
    fail(Code::BadNode,
         fmt::format("expected {} entries of 0 or more in 'output_padding' and 'output_shape', got {} and {}", axes,
                     listText(extra), listText(wanted)));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < 0 || wanted[i] > kMost * kMost)
      fail(Code::BadNode, fmt::format("expected extents in 'output_shape', got {}", listText(wanted)));
    const int64_t full = window.strides[i] * (x.dim(static_cast<int>(i) + 2) - 1) + extra[i] + window.reach(i);
    const int64_t total = full - wanted[i];
    const PadPair pair = splitPadding(std::max<int64_t>(total, 0), window.autoPad == "SAME_UPPER");
    window.pads[i] = pair.before;
    window.pads[axes + i] = pair.after;
    extra[i] += std::max<int64_t>(-total, 0);
  }
  c.out(c.b.convTranspose(x, filter, c.optional(2),
                          {.strides = window.strides,
                           .pads = window.pads,
                           .dilations = window.dilations,
                           .group = c.integer("group", 1),
                           .outputPadding = extra}));
}

// Gauss elimination, one column after the other, with the largest element of each as its pivot.
void det(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  const int rank = x.rank();
  if (rank < 2 || x.dim(rank - 1) != x.dim(rank - 2))
    fail(Code::BadNode, fmt::format("expected square matrices, got {}", x.type().text()));
  constexpr int64_t kMost = 512;
  const int64_t size = x.dim(rank - 1), count = product(x.shape(), 0, rank - 2);
  if (size > kMost)
    fail(Code::UnsupportedFeature, fmt::format("determinants of more than {} rows are not supported", kMost));
  Value rest = widened(b, b.reshaped(x, {count, size, size}));
  const Value one = b.scalarLike(rest, 1);
  Value result = b.expand(one, {.shape = {count, 1, 1}});
  for (int64_t n = size; n > 0; --n) {
    const Value best = b.argReduce(b.abs(sliced(b, rest, 2, 0, 1)), {.axis = 1});  // [count, 1, 1]
    const Value zero = b.scalar(ElemKind::Int64, 0), place = iota(b, n, 1, 3);
    const Value swapped = b.where(b.equal(place, zero), best, b.where(b.equal(place, best), zero, place));
    const Value rows = b.gatherND(rest, swapped, {.batchDims = 1});
    const Value first = sliced(b, rows, 1, 0, 1), others = sliced(b, rows, 1, 1, n - 1);
    const Value pivot = sliced(b, first, 2, 0, 1);
    result = b.mul(result, b.where(b.equal(best, zero), pivot, b.neg(pivot)));
    if (n == 1) break;
    // Where the pivot is 0 the result is, too, and stays so unless a division made NaN of the rest.
    const Value divisor = b.where(b.equal(pivot, b.scalarLike(pivot, 0)), one, pivot);
    const Value factor = b.div(sliced(b, others, 2, 0, 1), divisor);
    rest = b.sub(sliced(b, others, 2, 1, n - 1), b.mul(factor, sliced(b, first, 2, 1, n - 1)));
  }
  const std::vector<int64_t>& dims = x.shape().dims();
  c.out(b.reshaped(b.casted(result, x.kind()), {dims.begin(), dims.end() - 2}));
}

}  // namespace

std::span<const OpRow> linearRows() {
  static constexpr OpRow rows[] = {
      {"MatMul", matMul}, {"Gemm", gemm}, {"Conv", conv}, {"ConvTranspose", convTranspose}, {"Det", det},
  };
  return rows;
}

}  // namespace aglow::onnx
