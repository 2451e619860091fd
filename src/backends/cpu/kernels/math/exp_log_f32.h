// exp, log and their kin on vectors of f32. Largest errors: docs/accuracy.md; polynomials: tools/minimax.py.
#pragma once

#include "backends/cpu/kernels/math/lanes.h"

namespace aglow::cpu {

namespace exp_log {

inline constexpr float kLog2e = 0x1.715476p+0f;
// ln 2 in two parts; the first is short, so that its product with an exponent is exact. Both are positive, so that
// minus zero stays what it is.
inline constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
// Adding it leaves an integer in the lowest bits, rounded to nearest.
inline constexpr float kShift = 0x1.8p23f;

inline constexpr float kExp[] = {0.49999993451762032f, 0.16666520689401052f, 0.041668387350889028f,
                                 0.0083687098676646165f, 0.0013814613825225648f};
inline constexpr float kExpm1[] = {0.50000000441369368f,   0.16666666370645795f,   0.041666361036984578f,
                                   0.0083333893442502899f, 0.0013940616893019798f, 0.00019845878518526719f};
inline constexpr float kLog[] = {0.33333331708179713f,  -0.25000821037905864f, 0.20001226879482072f,
                                 -0.16623357221698376f, 0.14201757620361702f,  -0.1316018308172699f,
                                 0.12761580471136136f,  -0.076344993861544156f};

// x = n ln 2 + rest, |rest| up to ln 2 / 2. The lowest bits of `biased` hold n + kBias.
template <int W>
struct Reduced {
  F32<W> biased, rest;
};
template <int kBias, int W>
AGLOW_INLINE Reduced<W> reduce(F32<W> x) {
  const F32<W> biased = x * kLog2e + (kShift + kBias);
  const F32<W> n = biased - (kShift + kBias);
  F32<W> rest = x - n * kLn2High;
  rest = rest - n * kLn2Low;
  return {biased, rest};
}

template <int W>
AGLOW_INLINE F32<W> expOfRest(F32<W> rest) {
  const F32<W> tail = rest * polynomial(rest, kExp) + 1.0f;
  return tail * rest + 1.0f;
}

// A product, so that zero keeps its sign.
template <int W>
AGLOW_INLINE F32<W> expm1OfRest(F32<W> rest) {
  return rest * (rest * polynomial(rest, kExpm1) + 1.0f);
}

// x = 2^n m, m from sqrt(1/2) to sqrt(2), for finite x above 0.
template <int W>
struct Octave {
  I32<W> n;
  F32<W> m;
};
template <int W>
AGLOW_INLINE Octave<W> splitNormal(F32<W> x) {
  // Counted from sqrt(1/2), the bits of the exponent are n, and the others run through one octave.
  constexpr int32_t kRootHalf = 0x3F3504F3;
  const I32<W> above = bitsAs<I32<W>>(x) - kRootHalf;
  return {above >> 23, bitsAs<F32<W>>((above & 0x7FFFFF) + kRootHalf)};
}
template <int W>
AGLOW_INLINE Octave<W> split(F32<W> x) {
  const I32<W> tiny = x < 0x1p-126f;
  const auto [n, m] = splitNormal(tiny ? x * 0x1p23f : x);
  return {n - (tiny & 23), m};
}

// log(1 + f) for 1 + f from sqrt(1/2) to sqrt(2), plus n ln 2.
template <int W>
AGLOW_INLINE F32<W> logOfParts(F32<W> f, F32<W> n) {
  const F32<W> square = f * f;
  F32<W> tail = square * f * polynomial(f, kLog) + n * kLn2Low;
  tail = tail - 0.5f * square;
  return n * kLn2High + (f + tail);
}

}  // namespace exp_log

// Subnormal results are rounded once, like all others.
template <int W>
AGLOW_INLINE F32<W> exp(F32<W> x) {
  // Two factors, because neither 2^128 nor 2^-150 is a normal number. What stands above n in the bits leaves no trace.
  const auto [biased, rest] = exp_log::reduce<2 * 127>(clampLanes(x, -104.0f, 89.0f));
  const U32<W> exponents = bitsAs<U32<W>>(biased), half = exponents >> 1;
  return exp_log::expOfRest(rest) * bitsAs<F32<W>>(half << 23) * bitsAs<F32<W>>((exponents - half) << 23);
}

// exp of values up to 88, as softmax needs it: with a quarter fewer instructions, and zero below -87.68, where exp is
// subnormal.
template <int W>
AGLOW_INLINE F32<W> expFlushed(F32<W> x) {
  const F32<W> lowest = -88.02f;
  const auto [biased, rest] = exp_log::reduce<127>(lowest > x ? lowest : x);
  return exp_log::expOfRest(rest) * bitsAs<F32<W>>(bitsAs<U32<W>>(biased) << 23);
}

template <int W>
AGLOW_INLINE F32<W> expm1(F32<W> x) {
  // 2^(n - 1) and a product with 2 at the end, because 2^128 is not an f32.
  const auto [biased, rest] = exp_log::reduce<126>(clampLanes(x, -20.0f, 89.0f));
  const F32<W> small = exp_log::expm1OfRest(rest);
  const F32<W> scale = bitsAs<F32<W>>(bitsAs<U32<W>>(biased) << 23);
  const F32<W> large = (scale * small + (scale - 0.5f)) * 2.0f;
  return scale == 0.5f ? small : large;
}

template <int W>
AGLOW_INLINE F32<W> log(F32<W> x) {
  const auto [n, m] = exp_log::split(x);
  F32<W> result = exp_log::logOfParts(m - 1.0f, convertLanes<F32<W>>(n));
  result = x < __builtin_inff() ? result : x;  // infinity and NaN
  result = x == 0.0f ? F32<W>(-__builtin_inff()) : result;
  return x < 0.0f ? F32<W>(__builtin_nanf("")) : result;
}

template <int W>
AGLOW_INLINE F32<W> log1p(F32<W> x) {
  // 1 + x = u + lost, without an error.
  const F32<W> u = x + 1.0f;
  const F32<W> lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
  const auto [n, m] = exp_log::splitNormal(u);
  // Above 2^25 nothing is lost, so the bound on the exponent only keeps the factor normal.
  const F32<W> shrink = powerOfTwo<W>(n < 100 ? -n : I32<W>(-100));
  F32<W> result = exp_log::logOfParts((m - 1.0f) + lost * shrink, convertLanes<F32<W>>(n));
  result = x < __builtin_inff() ? result : x;
  result = x == -1.0f ? F32<W>(-__builtin_inff()) : result;
  result = x < -1.0f ? F32<W>(__builtin_nanf("")) : result;
  return x == 0.0f ? x : result;
}

}  // namespace aglow::cpu
