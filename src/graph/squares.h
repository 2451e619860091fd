// Roots of sums of squares, as norms and deviations are.
#pragma once

#include <string>
#include <vector>

#include "graph/builder.h"

namespace aglow {

// The square root of the sum or mean of x * x over the axes, plus epsilon before the root. Squares are f64: those of an
// f32 leave its range from 1.8e19 on, long before the root does.
inline Value rootOfSquares(Builder& b, Value x, const std::string& how, const std::vector<int64_t>& axes,
                           double epsilon = 0, bool keepdims = true) {
  const Value wide = b.casted(x, ElemKind::Float64);
  const Value sum = b.reduced(b.mul(wide, wide), how, axes, keepdims);
  return b.casted(b.sqrt(epsilon == 0 ? sum : b.add(sum, b.scalarLike(sum, epsilon))), x.kind());
}

}  // namespace aglow
