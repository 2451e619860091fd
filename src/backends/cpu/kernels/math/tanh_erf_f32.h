// tanh and erf on vectors of f32. Near 0 their errors are small against the argument, far from it against the distance
// to 1, so neither is more than 1.
#pragma once

#include "backends/cpu/kernels/math/exp_log_f32.h"

namespace aglow::cpu {

namespace erf_parts {

inline constexpr float kNear[] = {1.1283791657267261f,    -0.37612625824233429f,  0.11283585148064983f,
                                  -0.026853811902524053f, 0.0051883276145877548f, -0.00080101929583782639f,
                                  7.853859069005038e-5f};
inline constexpr float kFar[] = {0.51139256660316348f,    -0.28242689404954688f,   0.018939820122244279f,
                                 0.017206629746782794f,   -0.0028072215494594164f, -0.00067101662718152798f,
                                 0.00017976577644390822f, 1.6022454032376442e-5f};

}  // namespace erf_parts

template <int W>
AGLOW_INLINE F32<W> tanh(F32<W> x) {
  // With e = expm1(-2 |x|): tanh |x| = -e / (e + 2).
  const F32<W> doubled = absLanes(x) * -2.0f, lowest = -20.0f;
  const auto [biased, rest] = exp_log::reduce<127>(lowest > doubled ? lowest : doubled);
  const F32<W> scale = bitsAs<F32<W>>(bitsAs<U32<W>>(biased) << 23);
  const F32<W> e = scale * exp_log::expm1OfRest(rest) + (scale - 1.0f);
  return withSign(e / (e + 2.0f), x);
}

template <int W>
AGLOW_INLINE F32<W> erf(F32<W> x) {
  const F32<W> size = absLanes(x), highest = 4.0f;
  const F32<W> near = x * polynomial(x * x, erf_parts::kNear);
  F32<W> power = polynomial((highest < size ? highest : size) - 2.0f, erf_parts::kFar);
  power *= power;
  power *= power;
  const F32<W> far = 1.0f - power * power;
  return size < 1.0f ? near : withSign(far, x);
}

}  // namespace aglow::cpu
