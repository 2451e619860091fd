#include "grad/shapes.h"

#include <algorithm>

namespace aglow::grad {

namespace {

std::vector<int64_t> others(const std::vector<int64_t>& axes, int rank) {
  std::vector<int64_t> rest;
  for (int64_t a = 0; a < rank; ++a)
    if (std::find(axes.begin(), axes.end(), a) == axes.end()) rest.push_back(a);
  return rest;
}

}  // namespace

std::vector<int64_t> frontFirst(const std::vector<int64_t>& axes, int rank) {
  std::vector<int64_t> perm = axes;
  for (const int64_t a : others(axes, rank)) perm.push_back(a);
  return perm;
}

std::vector<int64_t> endLast(const std::vector<int64_t>& axes, int rank) {
  std::vector<int64_t> perm = others(axes, rank);
  perm.insert(perm.end(), axes.begin(), axes.end());
  return perm;
}

Value summedTo(Builder& b, Value g, const Shape& shape) {
  if (g.shape() == shape) return g;
  const int more = g.rank() - shape.rank();
  std::vector<int64_t> axes = axesBetween(0, more);
  for (int a = 0; a < shape.rank(); ++a)
    if (shape[a] != g.dim(a + more)) axes.push_back(a + more);
  return b.reshaped(axes.empty() ? g : b.reduced(g, "sum", axes), shape.dims());
}

Value flipped(Builder& b, Value x, const std::vector<int64_t>& axes) {
  SliceAttrs cut{.starts = std::vector<int64_t>(static_cast<size_t>(x.rank()), 0), .sizes = x.shape().dims()};
  cut.steps.assign(cut.starts.size(), 1);
  for (const int64_t axis : axes) {
    const auto a = static_cast<size_t>(axis);
    cut.starts[a] = std::max<int64_t>(cut.sizes[a] - 1, 0);
    cut.steps[a] = -1;
  }
  return axes.empty() ? x : b.slice(x, cut);
}

Value placed(Builder& b, Value x, const Type& type, std::vector<int64_t> starts, std::vector<int64_t> steps) {
  if (x.type().elements() == 0) return zeros(b, type);
  std::vector<int64_t> turned;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    if (x.dim(axis) == 1) steps[a] = 1;
    if (steps[a] > 0) continue;
    turned.push_back(axis);
    starts[a] += (x.dim(axis) - 1) * steps[a];
    steps[a] = -steps[a];
  }
  x = flipped(b, x, turned);
  const Value zero = b.scalarLike(x, 0);
  // Elements a few steps apart: each is followed by zeros.
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    if (steps[a] == 1) continue;
    std::vector<int64_t> split = x.shape().dims(), joined = split, after(split.size() + 1, 0);
    split.insert(split.begin() + axis + 1, 1);
    after[a + 1] = steps[a] - 1;
    joined[a] *= steps[a];
    x = b.reshaped(b.pad(b.reshaped(x, split), zero, {.before = std::vector<int64_t>(after.size(), 0), .after = after}),
                   joined);
    joined[a] -= steps[a] - 1;
    x = firstOf(b, x, joined);
  }
  if (x.shape() == type.shape()) return x;
  std::vector<int64_t> after;
  for (int axis = 0; axis < x.rank(); ++axis)
    after.push_back(type.dim(axis) - x.dim(axis) - starts[static_cast<size_t>(axis)]);
  return b.pad(x, zero, {.before = starts, .after = after});
}

}  // namespace aglow::grad
