// Division, remainder and power of 64-bit integers as reference/arithmetic.h has them: total, and wrapping.
#pragma once

#include "backends/cpu/kernels/math/lanes.h"

namespace aglow::cpu {

template <class I>
inline constexpr bool kHasSign = I(-1) < I(0);

// Minus one is apart, because the lowest value divided by it traps.
template <class I>
AGLOW_INLINE I divided(I a, I b) {
  if (b == 0) return 0;
  if (kHasSign<I> && b == I(-1)) return static_cast<I>(0 - static_cast<uint64_t>(a));
  return a / b;
}

template <class I>
AGLOW_INLINE I remainder(I a, I b) {
  if (b == 0 || (kHasSign<I> && b == I(-1))) return 0;
  return a % b;
}

// A negative exponent gives zero unless the base is 1 or -1.
template <class I>
AGLOW_INLINE I raised(I base, I exponent) {
  if (kHasSign<I> && exponent < 0) {
    if (base != I(1) && base != I(-1)) return 0;
    return base == I(1) || exponent % 2 == 0 ? I(1) : I(-1);
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= factor;
    factor *= factor;
  }
  return static_cast<I>(result);
}

}  // namespace aglow::cpu
