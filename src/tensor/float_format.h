// The narrow floats as data, a record for each. Kernels without a standard library read them too.
#pragma once

#include <stdint.h>

namespace aglow {

// What the patterns with the largest exponent mean.
enum class FloatEnd : uint8_t {
  Ieee,    // infinities and NaNs
  OneNan,  // finite values, but for all ones: NaN ("FN")
  NoSign,  // finite values; the pattern of -0 is the only NaN ("FNUZ")
  Finite,  // finite values; there is no NaN
};

struct FloatFormat {
  int exponentBits;
  int mantissaBits;
  int bias;
  FloatEnd end;

  constexpr uint64_t signBit() const { return uint64_t{1} << (exponentBits + mantissaBits); }
  constexpr uint64_t infinity() const { return signBit() - (uint64_t{1} << mantissaBits); }
  constexpr uint64_t largest() const {
    switch (end) {
      case FloatEnd::Ieee:
        return infinity() - 1;
      case FloatEnd::OneNan:
        return signBit() - 2;
      default:
        return signBit() - 1;
    }
  }
  constexpr uint64_t nan(bool negative) const {
    const uint64_t sign = negative ? signBit() : 0;
    switch (end) {
      case FloatEnd::Ieee:
        return sign | infinity() | (uint64_t{1} << (mantissaBits - 1));
      case FloatEnd::OneNan:
        return sign | (signBit() - 1);
      case FloatEnd::NoSign:
        return signBit();
      case FloatEnd::Finite:
        break;
    }
    // Nothing fits; ONNX's test data has zeros with the sign turned.
    return sign ^ signBit();
  }
  constexpr uint64_t overflow(bool negative) const {
    const uint64_t sign = negative ? signBit() : 0;
    if (end == FloatEnd::Ieee) return sign | infinity();
    return end == FloatEnd::Finite ? sign | largest() : nan(negative);
  }
  constexpr bool isNan(uint64_t bits) const {
    const uint64_t magnitude = bits & (signBit() - 1);
    switch (end) {
      case FloatEnd::Ieee:
        return magnitude > infinity();
      case FloatEnd::OneNan:
        return magnitude == signBit() - 1;
      case FloatEnd::NoSign:
        return bits == signBit();
      case FloatEnd::Finite:
        break;
    }
    return false;
  }
};

inline constexpr FloatFormat kFloat16Format{5, 10, 15, FloatEnd::Ieee};
inline constexpr FloatFormat kBFloat16Format{8, 7, 127, FloatEnd::Ieee};
inline constexpr FloatFormat kE4M3FNFormat{4, 3, 7, FloatEnd::OneNan};
inline constexpr FloatFormat kE4M3FNUZFormat{4, 3, 8, FloatEnd::NoSign};
inline constexpr FloatFormat kE5M2Format{5, 2, 15, FloatEnd::Ieee};
inline constexpr FloatFormat kE5M2FNUZFormat{5, 2, 16, FloatEnd::NoSign};
inline constexpr FloatFormat kE2M1Format{2, 1, 1, FloatEnd::Finite};

}  // namespace aglow
