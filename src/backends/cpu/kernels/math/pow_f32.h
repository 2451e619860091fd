// pow and rem (C's fmod) on vectors of f32, by way of f64. Polynomials: tools/minimax.py.
#pragma once

#include "backends/cpu/kernels/math/exp_log_f32.h"

namespace aglow::cpu {

namespace power {

inline constexpr double kLog2[] = {2.88539008177785,   0.9617966941133067,  0.57707794237676932,
                                   0.4122092510564025, 0.31990575499804459, 0.28289928287237446};
inline constexpr double kExp2[] = {0.99999999996168205,    0.69314718072844879,  0.24022651198157178,
                                   0.05550410353446038,    0.009618027253673931, 0.0013333922565448268,
                                   0.00015469291148226063, 1.5201921050132119e-5};
inline constexpr double kShift = 0x1.8p52;

// log2 of finite values above 0, right to 44 bits.
template <int W>
AGLOW_INLINE F64<W> log2(F32<W> x) {
  const auto [n, m] = exp_log::split(x);
  const F64<W> wide = convertLanes<F64<W>>(m);
  const F64<W> s = (wide - 1.0) / (wide + 1.0);
  return s * polynomial(s * s, kLog2) + convertLanes<F64<W>>(n);
}

// 2^t for t from -1000 to 1000, right to 34 bits.
template <int W>
AGLOW_INLINE F64<W> exp2(F64<W> t) {
  const F64<W> biased = t + (kShift + 1023);
  const F64<W> rest = t - (biased - (kShift + 1023));
  return polynomial(rest, kExp2) * bitsAs<F64<W>>(bitsAs<U64<W>>(biased) << 52);
}

}  // namespace power

// With C's special cases.
template <int W>
AGLOW_INLINE F32<W> pow(F32<W> x, F32<W> y) {
  const F32<W> size = absLanes(x);
  F64<W> exponent = power::log2(size) * convertLanes<F64<W>>(y);
  // log2 of 0 and infinity: only its sign and that of y matter, as neither has a product in range.
  const F32<W> signs = bitsAs<F32<W>>(bitsAs<U32<W>>(y) ^ (size == 0.0f ? U32<W>(0x80000000u) : U32<W>(0)));
  const I32<W> extreme = (size == 0.0f) | (size == __builtin_inff());
  const F64<W> extremes = convertLanes<F64<W>>(withSign(F32<W>(1000.0f), signs));
  exponent = convertLanes<I64<W>>(extreme) != 0 ? extremes : exponent;
  F32<W> result = convertLanes<F32<W>>(power::exp2(clampLanes(exponent, -200.0, 200.0)));

  // From 2^24 on every f32 is an even integer.
  const F32<W> bounded = clampLanes(y == y ? y : F32<W>(0.0f), -0x1p24f, 0x1p24f);
  const I32<W> whole = convertLanes<I32<W>>(bounded);
  const I32<W> fraction = convertLanes<F32<W>>(whole) != bounded;
  const I32<W> negated = bitsAs<I32<W>>(x) & (whole << 31) & ~fraction;  // the sign of x, under odd powers
  result = bitsAs<F32<W>>(bitsAs<I32<W>>(result) | negated);
  const I32<W> unreal = (x < 0.0f) & (size < __builtin_inff()) & fraction;
  result = unreal ? F32<W>(__builtin_nanf("")) : result;
  const I32<W> nan = (x != x) | (y != y);
  result = nan ? x + y : result;
  const I32<W> one = (y == 0.0f) | (x == 1.0f) | ((x == -1.0f) & (absLanes(y) == __builtin_inff()));
  return one ? F32<W>(1.0f) : result;
}

// x - y trunc(x / y), without an error.
template <int W>
AGLOW_INLINE F32<W> rem(F32<W> x, F32<W> y) {
  const F32<W> a = absLanes(x), b = absLanes(y);
  const I32<W> plain = (a < __builtin_inff()) & (b > 0.0f) & (b < __builtin_inff());
  F64<W> rest = convertLanes<F64<W>>(plain ? a : F32<W>(0.0f));
  const U64<W> divisor = bitsAs<U64<W>>(convertLanes<F64<W>>(plain ? b : F32<W>(1.0f)));
  // Each round takes off 28 bits of the quotient: as many as have an exact product with the divisor.
  I64<W> excess;
  do {
    const U64<W> quotient = bitsAs<U64<W>>(rest / bitsAs<F64<W>>(divisor));
    excess = bitsAs<I64<W>>(quotient >> 52) - (1023 + 27);
    excess = excess > 0 ? excess : I64<W>(0);
    const U64<W> scale = bitsAs<U64<W>>(excess) << 52;
    const F64<W> multiple = bitsAs<F64<W>>(divisor + scale);
    const F64<W> digits = convertLanes<F64<W>>(convertLanes<I32<W>>(bitsAs<F64<W>>(quotient - scale)));
    rest = rest - digits * multiple;
    rest = rest < 0.0 ? rest + multiple : rest;
  } while (anyLane(excess != 0));
  const I32<W> kept = (a < __builtin_inff()) & (b == __builtin_inff());
  const F32<W> special = kept ? a : F32<W>(__builtin_nanf(""));
  return withSign(plain ? convertLanes<F32<W>>(rest) : special, x);
}

}  // namespace aglow::cpu
