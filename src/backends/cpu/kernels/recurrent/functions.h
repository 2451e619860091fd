// The functions that recurrent layers apply to their gates, by the formulas of the records. For kernels only.
#pragma once

#include "backends/cpu/kernels/math/tanh_erf_f32.h"
#include "backends/cpu/kernels/recurrent/recurrent_desc.h"

namespace aglow::cpu {

// Larger and smaller of two, where NaN stays.
template <class V>
AGLOW_INLINE V atLeast(V x, float low) {
  const V lowest = low;
  return lowest > x ? lowest : x;
}
template <class V>
AGLOW_INLINE V atMost(V x, float high) {
  const V highest = high;
  return highest < x ? highest : x;
}

template <int W>
AGLOW_INLINE F32<W> activate(const FunctionDesc& f, F32<W> x) {
  const auto alpha = bitsAs<float>(f.alpha), beta = bitsAs<float>(f.beta);
  switch (f.kind) {
    case kRelu:
      return atLeast(x, 0);
    case kTanh:
      return tanh(x);
    case kSigmoid:
      return 1.0f / (exp(-x) + 1.0f);
    case kAffine:
      return x * alpha + beta;
    case kLeakyRelu:
      return x < 0.0f ? x * alpha : x;
    case kThresholdedRelu:
      return x > alpha ? x : F32<W>{};
    case kScaledTanh:
      return tanh(x * beta) * alpha;
    case kHardSigmoid:
      return atLeast(atMost(x * alpha + beta, 1), 0);
    case kElu:
      return x < 0.0f ? expm1(x) * alpha : x;
    case kSoftsign:
      return x / (absLanes(x) + 1.0f);
    default:
      return atLeast(x, 0) + log1p(exp(-absLanes(x)));
  }
}

}  // namespace aglow::cpu
