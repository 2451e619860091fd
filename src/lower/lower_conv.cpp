// A transposed convolution is a convolution with steps of 1 over its input, spread by zeros, with the filter turned.
#include <algorithm>

#include "graph/op_views.h"
#include "lower/rules.h"
#include "ops/axes.h"
#include "ops/window.h"

namespace aglow::lowering {

namespace {

// Every element of the spatial axes followed by stride - 1 zeros.
Value spread(Builder& b, Value x, const std::vector<int64_t>& strides) {
  if (std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 1; })) return x;
  std::vector<int64_t> split{x.dim(0), x.dim(1)}, after{0, 0}, joined = split;
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t extent = x.dim(static_cast<int>(i) + 2);
    split.insert(split.end(), {extent, 1});
    after.insert(after.end(), {0, strides[i] - 1});
    joined.push_back(extent * strides[i]);
  }
  const std::vector<int64_t> none(after.size(), 0);
  const Value padded = b.pad(b.reshaped(x, split), b.scalarLike(x, 0), {.before = none, .after = after});
  return b.reshaped(padded, joined);
}

// [in, out / group, kernel...] with every kernel axis turned, as the filter [out, in / group, kernel...].
Value turned(Builder& b, Value filter, int64_t group) {
  const std::vector<int64_t>& dims = filter.shape().dims();
  const size_t rank = dims.size();
  SliceAttrs reverse{.starts = std::vector<int64_t>(rank, 0), .sizes = dims, .steps = std::vector<int64_t>(rank, 1)};
  for (size_t axis = 2; axis < rank; ++axis) {
    reverse.starts[axis] = dims[axis] - 1;
    reverse.steps[axis] = -1;
  }
  std::vector<int64_t> grouped{group, dims[0] / group, dims[1]}, perm{0, 2, 1},
      joined{group * dims[1], dims[0] / group};
  for (size_t axis = 2; axis < rank; ++axis) {
    grouped.push_back(dims[axis]);
    perm.push_back(static_cast<int64_t>(axis) + 1);
    joined.push_back(dims[axis]);
  }
  return b.reshaped(b.transposed(b.reshaped(b.slice(filter, reverse), grouped), perm), joined);
}

// Cuts -n elements where a pad is negative, and makes it 0. Where x is shorter, the pad on the other side gives the
// rest.
Value cropped(Builder& b, Value x, std::vector<int64_t>& pads) {
  const size_t axes = pads.size() / 2;
  std::vector<int64_t> starts(axes + 2, 0), sizes = x.shape().dims();
  for (size_t i = 0; i < axes; ++i) {
    int64_t &front = pads[i], &back = pads[axes + i], &size = sizes[i + 2];
    const auto cut = [&size](int64_t& pad, int64_t& other) {
      const int64_t count = std::clamp<int64_t>(-pad, 0, size);
      size -= count;
      pad += count;
      other += std::min<int64_t>(pad, 0);
      pad = std::max<int64_t>(pad, 0);
      return count;
    };
    starts[i + 2] = cut(front, back);
    cut(back, front);
  }
  return sizes == x.shape().dims() ? x : b.slice(x, {.starts = starts, .sizes = sizes});
}

}  // namespace

std::vector<Value> convTranspose(Builder& b, Node& node) {
  const ConvTransposeNode v(node);
  if (v.type().elements() == 0) return {b.splat({.elem = v.type().kind(), .shape = v.type().shape().dims()})};
  const std::vector<int64_t>& dims = v.filter().shape().dims();
  const Window window = orFail(windowOf(v.attrs(), {dims.begin() + 2, dims.end()}));
  const std::vector<int64_t> extra = filled(v.outputPadding(), window.axes(), 0);
  // What a tap may reach beyond the spread input, less what the pads cut from the result. The zeros after the last
  // element are part of the spread input already.
  std::vector<int64_t> pads;
  pads.reserve(2 * static_cast<size_t>(window.axes()));
  for (int axis = 0; axis < window.axes(); ++axis)
    pads.push_back(window.reach(axis) - 1 - window.before[static_cast<size_t>(axis)]);
  for (int axis = 0; axis < window.axes(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    pads.push_back(window.reach(axis) - window.strides[a] - window.after[a] + extra[a]);
  }
  const Value x = cropped(b, spread(b, v.x(), window.strides), pads);
  return {b.conv(x, turned(b, v.filter(), v.group()), v.bias(),
                 {.pads = pads, .dilations = window.dilations, .group = v.group()})};
}

}  // namespace aglow::lowering
