// sin, cos and atan on vectors of f32, for arguments of any size. Polynomials: tools/minimax.py.
#pragma once

#include "backends/cpu/kernels/math/lanes.h"

namespace aglow::cpu {

namespace trig {

inline constexpr float kSin[] = {-0.16666654609560475f, 0.0083321607624884405f, -0.00019515283260688042f};
inline constexpr float kCos[] = {0.041666645682923275f, -0.0013887316252252093f, 2.4433156851503927e-5f};
inline constexpr float kAtan[] = {-0.33333299089273925f,  0.19998548284653424f,   -0.1426424165823264f,
                                  0.10952185582781515f,   -0.084034496323839908f, 0.057957580234815917f,
                                  -0.031177831650705364f, 0.010914597794638211f,  -0.0017936198785547938f};

// pi / 2 in two parts; the first is short, so that its product with a number of quadrants below 2^23 is exact.
inline constexpr double kHalfPiHigh = 0x1.921fb54p+0, kHalfPiLow = 0x1.10b4611a62633p-30;
inline constexpr double kHalfPi = 0x1.921fb54442d18p+0, kTwoOverPi = 0x1.45f306dc9c883p-1;
// Adding it leaves an integer in the lowest bits, rounded to nearest.
inline constexpr double kShift = 0x1.8p52;
// From here on angles lose bits that matter if they are multiplied in double.
inline constexpr float kHuge = 0x1p22f;

// 2 / pi after 32 zeros.
inline constexpr uint32_t kTwoOverPiBits[] = {0,          0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0,
                                              0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561};

// x = quadrant pi / 2 + rest, |rest| up to pi / 4; only the two lowest bits of the quadrant count.
template <int W>
struct Angle {
  F32<W> rest;
  I32<W> quadrant;
};

// An exact product of the significand with those bits of 2 / pi that count: above them stand multiples of four
// quadrants, below them less than an f32 can tell.
AGLOW_INLINE Angle<1> hugeAngle(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint64_t significand = (bits & 0x7FFFFF) | 0x800000;
  const uint32_t first = ((bits >> 23) & 0xFF) - 120;
  const uint32_t* words = kTwoOverPiBits + first / 32;
  const uint32_t shift = first % 32;
  const auto word = [=](int i) { return (((uint64_t{words[i]} << 32) | words[i + 1]) << shift) >> 32; };
  const uint64_t product = ((significand * word(0)) << 32) + significand * word(1) + ((significand * word(2)) >> 32);
  const uint64_t quadrant = (product + (uint64_t{1} << 61)) >> 62;
  const auto rest =
      static_cast<float>(static_cast<double>(static_cast<int64_t>(product - (quadrant << 62))) * (kHalfPi * 0x1p-62));
  const auto turns = static_cast<int32_t>(quadrant);
  return x < 0 ? Angle<1>{-rest, -turns} : Angle<1>{rest, turns};
}

template <int W>
AGLOW_INLINE Angle<W> angleOf(F32<W> x) {
  const F32<W> size = absLanes(x);
  const F64<W> wide = convertLanes<F64<W>>(x);
  const F64<W> shifted = wide * kTwoOverPi + kShift;
  const F64<W> n = shifted - kShift;
  F64<W> exact = wide - n * kHalfPiHigh;
  exact = exact - n * kHalfPiLow;
  Angle<W> angle{convertLanes<F32<W>>(exact), convertLanes<I32<W>>(bitsAs<I64<W>>(shifted))};
  const I32<W> huge = size >= kHuge;
  if (anyLane(huge)) {
#pragma clang loop unroll(disable)
    for (int lane = 0; lane < W; ++lane) {
      if (huge[lane] == 0) continue;
      const Angle<1> one = hugeAngle(x[lane]);
      angle.rest[lane] = one.rest[0];
      angle.quadrant[lane] = one.quadrant[0];
    }
    angle.rest = size < __builtin_inff() ? angle.rest : F32<W>(__builtin_nanf(""));
  }
  return angle;
}

template <int W>
AGLOW_INLINE F32<W> sine(Angle<W> angle) {
  const F32<W> r = angle.rest, square = r * r;
  const F32<W> sine = r * (square * polynomial(square, kSin) + 1.0f);
  const F32<W> cosine = (square * square * polynomial(square, kCos) - 0.5f * square) + 1.0f;
  const F32<W> size = (angle.quadrant & 1) != 0 ? cosine : sine;
  return bitsAs<F32<W>>(bitsAs<I32<W>>(size) ^ ((angle.quadrant & 2) << 30));
}

}  // namespace trig

template <int W>
AGLOW_INLINE F32<W> sin(F32<W> x) {
  return trig::sine(trig::angleOf(x));
}

template <int W>
AGLOW_INLINE F32<W> cos(F32<W> x) {
  const trig::Angle<W> angle = trig::angleOf(x);
  return trig::sine(trig::Angle<W>{angle.rest, angle.quadrant + 1});
}

template <int W>
AGLOW_INLINE F32<W> atan(F32<W> x) {
  // Above 1: atan x = pi / 2 + atan(-1 / x), pi / 2 in two parts.
  const F32<W> size = absLanes(x);
  const I32<W> steep = size > 1.0f;
  const F32<W> z = steep ? -1.0f / size : size;
  const F32<W> square = z * z;
  const F32<W> part = z * (square * polynomial(square, trig::kAtan) + 1.0f);
  return withSign(steep ? (part - 0x1.777a5cp-25f) + 0x1.921fb6p+0f : part, x);
}

}  // namespace aglow::cpu
