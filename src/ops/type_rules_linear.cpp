// Type rules of matrix products, convolutions and pools.
#include <fmt/format.h>

#include "ops/axes.h"
#include "ops/type_rules.h"
#include "ops/type_rules_support.h"
#include "ops/window.h"
#include "support/sizes.h"

namespace aglow::infer {

Types matMul(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 2));
  AGLOW_OK(checkRank(c, 1, 2));
  const Type& a = c.type(0);
  const Type& b = c.type(1);
  if (a.dim(a.rank() - 1) != b.dim(b.rank() - 2))
    return badNode(fmt::format("expected [..., m, k] and [..., k, n], got {} and {}", a.text(), b.text()));
  const auto leading = [](const Type& t) { return std::vector(t.shape().dims().begin(), t.shape().dims().end() - 2); };
  AGLOW_TRY(const Shape batch, broadcastBoth(Shape(leading(a)), Shape(leading(b))));
  std::vector<int64_t> dims = batch.dims();
  dims.push_back(a.dim(a.rank() - 2));
  dims.push_back(b.dim(b.rank() - 1));
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return std::vector{a.withShape(std::move(shape))};
}

namespace {

std::vector<int64_t> spatial(const Type& type) { return {type.shape().dims().begin() + 2, type.shape().dims().end()}; }

Types imageType(const Type& x, int64_t channels, const std::vector<int64_t>& extents) {
  std::vector<int64_t> dims{x.dim(0), channels};
  dims.insert(dims.end(), extents.begin(), extents.end());
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return std::vector{x.withShape(std::move(shape))};
}

// What both convolutions ask of filter and group; the filter's axis 0 or 1 holds the input's channels.
Status checkFilter(const InferContext& c, bool transposed) {
  AGLOW_OK(checkRank(c, 0, 3));
  const Type& x = c.type(0);
  const Type& filter = c.type(1);
  const int64_t group = c.attrs.integer("group");
  if (filter.rank() != x.rank())
    return badNode(fmt::format("expected as many axes in 'filter' as in 'x', got {} and {}", filter.text(), x.text()));
  if (group < 1) return badNode(fmt::format("expected 'group' to be at least 1, got {}", group));
  if (filter.dim(0) % group != 0)
    return badNode(
        fmt::format("expected the {} channels of axis 0 of 'filter' to divide into {} groups", filter.dim(0), group));
  const auto channels = transposed ? std::optional(filter.dim(0)) : checkedMul(filter.dim(1), group);
  if (!channels || *channels != x.dim(1))
    return badNode(fmt::format("expected {} channels in 'x' for filter {} in {} groups, got {}",
                               channels ? fmt::format("{}", *channels) : "countless", filter.text(), group, x.text()));
  const auto out = transposed ? checkedMul(filter.dim(1), group) : std::optional(filter.dim(0));
  if (!out) return badNode(fmt::format("filter {} in {} groups gives too many channels", filter.text(), group));
  if (c.has(2)) AGLOW_OK(checkShape(c, 2, Shape{*out}));
  return {};
}

// Whole windows, or as many as `sizes` asks for as long as each starts inside of the padded input.
Types pooled(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 3));
  const Type& x = c.type(0);
  AGLOW_OK(checkLength("kernel", c.attrs.ints("kernel"), x.rank() - 2));
  AGLOW_TRY(const Window window, windowOf(c.attrs, c.attrs.ints("kernel")));
  const std::vector<int64_t>& sizes = c.attrs.ints("sizes");
  if (sizes.empty()) {
    AGLOW_TRY(const std::vector<int64_t> extents, wholeWindows(window, x.shape()));
    return imageType(x, x.dim(1), extents);
  }
  AGLOW_OK(checkLength("sizes", sizes, window.axes()));
  AGLOW_OK(checkAtLeast("sizes", sizes, 1));
  for (int axis = 0; axis < window.axes(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    const int64_t padded = x.dim(axis + 2) + window.before[a];
    const auto start = checkedMul(sizes[a] - 1, window.strides[a]);
    if (!start || *start >= padded)
      return badNode(
          fmt::format("expected every window to start before {} along spatial axis {}, got {} windows in "
                      "steps of {}",
                      padded, axis, sizes[a], window.strides[a]));
  }
  return imageType(x, x.dim(1), sizes);
}

}  // namespace

Types conv(const InferContext& c) {
  AGLOW_OK(checkFilter(c, false));
  AGLOW_TRY(const Window window, windowOf(c.attrs, spatial(c.type(1))));
  AGLOW_TRY(const std::vector<int64_t> extents, wholeWindows(window, c.type(0).shape()));
  return imageType(c.type(0), c.type(1).dim(0), extents);
}

Types convTranspose(const InferContext& c) {
  AGLOW_OK(checkFilter(c, true));
  const Type& x = c.type(0);
  AGLOW_TRY(const Window window, windowOf(c.attrs, spatial(c.type(1))));
  const std::vector<int64_t> extra = filled(c.attrs.ints("output_padding"), window.axes(), 0);
  AGLOW_OK(checkLength("output_padding", extra, window.axes()));
  AGLOW_OK(checkAtLeast("output_padding", extra, 0));
  std::vector<int64_t> extents;
  for (int axis = 0; axis < window.axes(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    const auto span = checkedMul(x.dim(axis + 2) - 1, window.strides[a]);
    const auto full = span ? checkedAdd(*span, window.reach(axis)) : span;
    const auto padded = full ? checkedAdd(*full, extra[a]) : full;
    const auto cut = padded ? checkedSub(*padded, window.before[a]) : padded;
    const auto extent = cut ? checkedSub(*cut, window.after[a]) : cut;
    if (!extent || *extent < 0)
      return badNode(fmt::format("expected pads that leave a result along spatial axis {}, got an extent of {}", axis,
                                 extent ? fmt::format("{}", *extent) : "more than fits"));
    extents.push_back(*extent);
  }
  return imageType(x, c.type(1).dim(1) * c.attrs.integer("group"), extents);
}

Types col2Im(const InferContext& c) {
  const Type& x = c.type(0);
  const std::vector<int64_t>& sizes = c.attrs.ints("sizes");
  if (x.rank() != 3 || sizes.empty())
    return badNode(fmt::format("expected [batch, channel * kernel..., window] and extents of the image, got {} and {}",
                               x.text(), sizes.size()));
  AGLOW_OK(checkLength("kernel", c.attrs.ints("kernel"), static_cast<int>(sizes.size())));
  AGLOW_TRY(const Window window, windowOf(c.attrs, c.attrs.ints("kernel")));
  const int64_t taps = Shape(window.kernel).elements();
  AGLOW_TRY(std::vector<Type> image, imageType(x, x.dim(1) / taps, sizes));
  AGLOW_TRY(std::vector<int64_t> windows, wholeWindows(window, image.front().shape()));
  AGLOW_TRY(const Shape grid, computedShape(std::move(windows)));
  if (x.dim(1) % taps == 0 && x.dim(2) == grid.elements()) return image;
  return badNode(fmt::format("expected {} windows, and channels that are a multiple of {}, got {}", grid.elements(),
                             taps, x.text()));
}

Types maxPool(const InferContext& c) { return pooled(c); }

Types maxPoolWithIndices(const InferContext& c) {
  AGLOW_TRY(std::vector<Type> types, pooled(c));
  types.push_back(types.front().withKind(ElemKind::Int64));
  return types;
}

Types avgPool(const InferContext& c) { return pooled(c); }

}  // namespace aglow::infer
