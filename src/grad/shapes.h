// Shapes that rules build with.
#pragma once

#include <numeric>
#include <vector>

#include "graph/builder.h"

namespace aglow::grad {

inline Value zeros(Builder& b, const Type& type) {
  return b.splat({.elem = type.kind(), .shape = type.shape().dims()});
}

inline std::vector<int64_t> axesBetween(int64_t first, int64_t end) {
  std::vector<int64_t> axes(static_cast<size_t>(end > first ? end - first : 0));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

inline std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return back;
}

// The order of axes that takes the given ones to the front, or to the end.
std::vector<int64_t> frontFirst(const std::vector<int64_t>& axes, int rank);
std::vector<int64_t> endLast(const std::vector<int64_t>& axes, int rank);

// What was broadcast to the shape of `g` gets the sum of all that its elements became.
Value summedTo(Builder& b, Value g, const Shape& shape);

// `x` along some axes from the last element to the first.
Value flipped(Builder& b, Value x, const std::vector<int64_t>& axes);

// The inverse of a slice: zeros of type `type` with `x` at starts[i] + j * steps[i] along axis i.
Value placed(Builder& b, Value x, const Type& type, std::vector<int64_t> starts, std::vector<int64_t> steps);

// The first elements along each axis, as far as `dims` says.
inline Value firstOf(Builder& b, Value x, const std::vector<int64_t>& dims) {
  if (x.shape().dims() == dims) return x;
  return b.slice(x, {.starts = std::vector<int64_t>(dims.size(), 0), .sizes = dims});
}

}  // namespace aglow::grad
