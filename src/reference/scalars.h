// The primitives of formulas on arrays.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "ops/attrs.h"
#include "ops/formula.h"
#include "tensor/convert.h"

namespace aglow::reference {

// A real number in a domain: integers truncate and saturate, NaN is 0 there.
template <class D>
D fromReal(double value) {
  if constexpr (std::is_floating_point_v<D>) {
    return static_cast<D>(value);
  } else {
    std::conditional_t<std::is_signed_v<D>, int64_t, uint64_t> wide = 0;
    widen(ElemKind::Float64, reinterpret_cast<const std::byte*>(&value), 0, 1, 1, &wide);
    return static_cast<D>(wide);
  }
}

// Literals of a formula: negative ones wrap in an unsigned domain.
template <class D>
D literal(double value) {
  if constexpr (std::is_unsigned_v<D>)
    if (value < 0) return static_cast<D>(fromReal<int64_t>(value));
  return fromReal<D>(value);
}
// Of an attribute that a formula names.
double attributeValue(const Attrs& attrs, std::string_view name);

// out[i] = op(x[i], y[i], z[i]) as far as the primitive has operands, in double, float, int64_t, uint64_t, int32_t or
// uint32_t; a shift by `width` or more gives zero.
template <class D>
void applyScalar(Scalar op, const D* x, const D* y, const D* z, D* out, int64_t count, int width);

}  // namespace aglow::reference
