// Narrow floats in the integers that store them, from and to vectors of f32 (and from f64): the same results as
// tensor/convert.h, by integer arithmetic that every target has. NaNs keep their sign where the kind has one.
#pragma once

#include "backends/cpu/kernels/math/lanes.h"
#include "tensor/float_format.h"

namespace aglow::cpu {

// As ScaleRounding of tensor/convert.h.
enum ScaleRoundingMode : int { kScaleNearest = 0, kScaleUp = 1, kScaleDown = 2 };

template <class Real>
struct WideFloat;
template <>
struct WideFloat<float> {
  using Bits = int32_t;
  static constexpr int kMantissa = 23, kBias = 127;
};
template <>
struct WideFloat<double> {
  using Bits = int64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
};

template <class Real>
AGLOW_INLINE constexpr typename WideFloat<Real>::Bits powerOfTwoBits(int exponent) {
  using Bits = typename WideFloat<Real>::Bits;
  return static_cast<Bits>(exponent + WideFloat<Real>::kBias) << WideFloat<Real>::kMantissa;
}

template <FloatFormat F, int W, class Stored>
AGLOW_INLINE F32<W> widenFloat(Lanes<Stored, W> stored) {
  constexpr int kSign = static_cast<int>(F.signBit());
  constexpr int kShift = 23 - F.mantissaBits;
  const I32<W> bits = convertLanes<I32<W>>(stored);
  const I32<W> magnitude = bits & (kSign - 1);
  const I32<W> sign = (bits & kSign) << (31 - F.exponentBits - F.mantissaBits);
  I32<W> result = (magnitude << kShift) + ((127 - F.bias) << 23);
  if constexpr (F.bias < 127) {
    // The exponent of the smallest normal value, and its leading bit taken off again.
    const F32<W> raised =
        bitsAs<F32<W>>(result + (1 << 23)) - __builtin_bit_cast(float, powerOfTwoBits<float>(1 - F.bias));
    result = magnitude < (1 << F.mantissaBits) ? bitsAs<I32<W>>(raised) : result;
    if constexpr (F.end == FloatEnd::Ieee)
      result = magnitude >= static_cast<int>(F.infinity()) ? result | 0x7F800000 : result;
    if constexpr (F.end == FloatEnd::OneNan) result = magnitude == kSign - 1 ? I32<W>(0x7FC00000) : result;
    if constexpr (F.end == FloatEnd::NoSign) result = bits == kSign ? I32<W>(0x7FC00000) : result;
  }
  return bitsAs<F32<W>>(result | sign);
}

// To nearest even. The 8-bit kinds clamp with saturate instead of overflowing.
template <FloatFormat F, class Stored, int W, class Real>
AGLOW_INLINE Lanes<Stored, W> narrowFloat(Lanes<Real, W> value, bool saturate = false) {
  using Wide = WideFloat<Real>;
  using Bits = typename Wide::Bits;
  using V = Lanes<Bits, W>;
  constexpr Bits kSign = static_cast<Bits>(F.signBit()), kInfinity = powerOfTwoBits<Real>(Wide::kBias + 1);
  constexpr int kShift = Wide::kMantissa - F.mantissaBits;
  constexpr int kSignShift = 8 * sizeof(Bits) - 1 - F.exponentBits - F.mantissaBits;
  const V bits = bitsAs<V>(value);
  const V absolute = bits & ~(Bits{1} << (8 * sizeof(Bits) - 1));
  V sign = (bits >> kSignShift) & kSign;

  // A carry out of the mantissa raises the exponent, as it should.
  V magnitude = (absolute + ((absolute >> kShift) & 1) + ((Bits{1} << (kShift - 1)) - 1)) >> kShift;
  magnitude -= static_cast<Bits>(Wide::kBias - F.bias) << F.mantissaBits;
  if constexpr (F.bias < Wide::kBias) {
    // A sum whose last bit weighs as much as the smallest value rounds the subnormals.
    constexpr Bits kRounder = powerOfTwoBits<Real>(1 - F.bias + kShift);
    const Lanes<Real, W> sum = bitsAs<Lanes<Real, W>>(absolute) + __builtin_bit_cast(Real, kRounder);
    magnitude = absolute < powerOfTwoBits<Real>(1 - F.bias) ? bitsAs<V>(sum) - kRounder : magnitude;
  }
  constexpr Bits kLargest = static_cast<Bits>(F.largest()), kOverflow = static_cast<Bits>(F.overflow(false));
  const Bits beyond = saturate && kSign == 0x80 ? kLargest : kOverflow;
  magnitude = magnitude > kLargest ? V(beyond) : magnitude;
  magnitude = absolute > kInfinity ? V(static_cast<Bits>(F.nan(false))) : magnitude;
  if constexpr (F.end == FloatEnd::NoSign) sign &= (magnitude != 0) & (magnitude != kSign);
  return convertLanes<Lanes<Stored, W>>(magnitude ^ sign);
}

// Float8E8M0: powers of two from 2^-127 to 2^127, and NaN.
template <int W>
AGLOW_INLINE F32<W> widenScale(Lanes<uint8_t, W> stored) {
  const I32<W> exponent = convertLanes<I32<W>>(stored);
  I32<W> result = exponent << 23;
  result = exponent == 0 ? I32<W>(1 << 22) : result;
  return bitsAs<F32<W>>(exponent == 0xFF ? I32<W>(0x7FC00000) : result);
}

template <int W, class Real>
AGLOW_INLINE Lanes<uint8_t, W> narrowScale(Lanes<Real, W> value, bool saturate, int rounding) {
  using Wide = WideFloat<Real>;
  using Bits = typename Wide::Bits;
  using V = Lanes<Bits, W>;
  constexpr Bits kNan = 0xFF, kFraction = (Bits{1} << Wide::kMantissa) - 1;
  // Subnormals of the wide kind become normal for a while.
  const V tiny = bitsAs<V>(value) < powerOfTwoBits<Real>(1 - Wide::kBias);
  const Lanes<Real, W> normal = tiny ? value * __builtin_bit_cast(Real, powerOfTwoBits<Real>(60)) : value;
  const V bits = bitsAs<V>(normal) & ~(Bits{1} << (8 * sizeof(Bits) - 1));
  // What is added to the fraction decides from where on it carries into the exponent.
  const Bits up = rounding == kScaleUp ? kFraction : rounding == kScaleNearest ? (kFraction + 1) / 2 : 0;
  const V code = ((bits + up) >> Wide::kMantissa) - (Wide::kBias - 127) - (tiny & 60);
  V result = code < 0 ? V(saturate ? 0 : kNan) : code;
  result = code >= kNan ? V(saturate ? kNan - 1 : kNan) : result;
  return convertLanes<Lanes<uint8_t, W>>(value >= 0 ? result : V(kNan));
}

}  // namespace aglow::cpu
