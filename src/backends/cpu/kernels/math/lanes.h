// Words for arithmetic on vectors of any number of lanes, one included. An expression a * b + c becomes an fma where
// the target has one; everything that uses these words stays within its bounds either way.
#pragma once

#include "backends/cpu/kernels/abi.h"
#include "backends/cpu/kernels/loops.h"

namespace aglow::cpu {

template <int W>
using F32 = Lanes<float, W>;
template <int W>
using I32 = Lanes<int32_t, W>;
template <int W>
using U32 = Lanes<uint32_t, W>;
template <int W>
using F64 = Lanes<double, W>;
template <int W>
using I64 = Lanes<int64_t, W>;
template <int W>
using U64 = Lanes<uint64_t, W>;

template <class To, class From>
AGLOW_INLINE To bitsAs(From value) {
  return __builtin_bit_cast(To, value);
}

// Lane by lane; a real that an integer cannot hold gives no value at all, so it is bounded before.
template <class To, class From>
AGLOW_INLINE To convertLanes(From value) {
  return __builtin_convertvector(value, To);
}

// Coefficients from the lowest degree up.
template <class V, class T, int N>
AGLOW_INLINE V polynomial(V x, const T (&c)[N]) {
  V sum = c[N - 1];
#pragma clang loop unroll(full)
  for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

// NaN stays.
template <class V, class T>
AGLOW_INLINE V clampLanes(V x, T low, T high) {
  const V lowest = low, highest = high;
  x = lowest > x ? lowest : x;
  return highest < x ? highest : x;
}

template <int W>
AGLOW_INLINE F32<W> absLanes(F32<W> x) {
  return bitsAs<F32<W>>(bitsAs<U32<W>>(x) & 0x7FFFFFFFu);
}

// The magnitude of the first with the sign of the second.
template <int W>
AGLOW_INLINE F32<W> withSign(F32<W> magnitude, F32<W> sign) {
  return bitsAs<F32<W>>((bitsAs<U32<W>>(magnitude) & 0x7FFFFFFFu) | (bitsAs<U32<W>>(sign) & 0x80000000u));
}

// 2 to the power of an integer from -126 to 127.
template <int W>
AGLOW_INLINE F32<W> powerOfTwo(I32<W> n) {
  return bitsAs<F32<W>>((n + 127) << 23);
}

// Whether a comparison holds in any lane.
template <class Mask>
AGLOW_INLINE bool anyLane(Mask mask) {
  return __builtin_reduce_or(mask) != 0;
}

}  // namespace aglow::cpu
