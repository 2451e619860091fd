// One decoder and one encoder for all narrow floats.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "tensor/float_format.h"

namespace aglow {

// The parts of a double.
inline constexpr int kDoubleMantissa = 52;
inline constexpr int kDoubleBias = 1023;
inline constexpr uint64_t kDoubleSign = uint64_t{1} << 63;
inline constexpr uint64_t kDoubleInfinity = uint64_t{0x7FF} << kDoubleMantissa;
inline constexpr uint64_t kDoubleNan = uint64_t{0xFFF} << (kDoubleMantissa - 1);

constexpr double powerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + kDoubleBias) << kDoubleMantissa);
}

template <FloatFormat F>
constexpr double decodeFloat(uint64_t bits) {
  const uint64_t sign = (bits & F.signBit()) != 0 ? kDoubleSign : 0;
  if (F.isNan(bits)) return std::bit_cast<double>(sign | kDoubleNan);
  const uint64_t magnitude = bits & (F.signBit() - 1);
  if (F.end == FloatEnd::Ieee && magnitude == F.infinity()) return std::bit_cast<double>(sign | kDoubleInfinity);
  if (magnitude >> F.mantissaBits == 0) {
    const double subnormal = static_cast<double>(magnitude) * powerOfTwo(1 - F.bias - F.mantissaBits);
    return sign != 0 ? -subnormal : subnormal;
  }
  constexpr uint64_t kRebias = static_cast<uint64_t>(kDoubleBias - F.bias) << kDoubleMantissa;
  return std::bit_cast<double>(sign | ((magnitude << (kDoubleMantissa - F.mantissaBits)) + kRebias));
}

// To nearest even. Below a kind's normal range more of the significand is shifted out, and a carry out of the mantissa
// raises the exponent, so subnormals and the step to the next power of two need no case of their own.
template <FloatFormat F>
constexpr uint64_t encodeFloat(double value, bool saturate) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const bool negative = (bits & kDoubleSign) != 0;
  const uint64_t absolute = bits & ~kDoubleSign;
  if (absolute > kDoubleInfinity) return F.nan(negative);

  const int exponent = static_cast<int>(absolute >> kDoubleMantissa) - kDoubleBias + F.bias;  // 1 and more: normal
  const int normal = std::max(exponent, 1);
  // A shift past all 53 bits leaves less than a half, so capping it changes nothing; doubles that are subnormal
  // themselves end here too, whatever their leading bit.
  const int shift = std::min(kDoubleMantissa - F.mantissaBits + normal - exponent, 60);
  const uint64_t significand = (absolute & ((uint64_t{1} << kDoubleMantissa) - 1)) | (uint64_t{1} << kDoubleMantissa);
  const uint64_t kept = significand >> shift;
  const uint64_t lost = significand & ((uint64_t{1} << shift) - 1);
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t up = lost > half || (lost == half && (kept & 1) != 0) ? 1 : 0;
  const uint64_t magnitude = (static_cast<uint64_t>(normal - 1) << F.mantissaBits) + kept + up;

  if (magnitude > F.largest()) {
    if (!saturate) return F.overflow(negative);
    return F.largest() | (negative ? F.signBit() : 0);
  }
  if (F.end == FloatEnd::NoSign && magnitude == 0) return 0;
  return magnitude | (negative ? F.signBit() : 0);
}

}  // namespace aglow
