// Narrow floats of the CPU kernel library against tensor/convert.h: every stored value, every tie between two of them
// and its neighbours, and a dense sample of all f32.
#ifdef __clang__                            // kernels are written in clang's vectors
#pragma clang diagnostic ignored "-Wpsabi"  // nothing is passed in vectors: all of it is inlined
#include "backends/cpu/kernels/math/narrow_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tensor/convert.h"

namespace aglow::cpu {
namespace {

constexpr int kLanes = 16;

// Values at which narrowing may go wrong: each value of the kind, halfway to the next, and the f32 around both.
std::vector<float> sampleFor(ElemKind kind) {
  std::vector<float> sample;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto around = [&](float value) {
    for (const float v : {value, std::nextafter(value, kInfinity), std::nextafter(value, -kInfinity)}) {
      sample.push_back(v);
      sample.push_back(-v);
    }
  };
  const uint32_t values = 1u << elemInfo(kind).bits;
  for (uint32_t bits = 0; bits < values; ++bits) {
    const auto value = static_cast<float>(floatFromBits(kind, bits));
    const auto next = static_cast<float>(floatFromBits(kind, (bits + 1) % values));
    around(value);
    around(value / 2 + next / 2);
    around(value * 1.5f);
  }
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 65521)
    sample.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (const uint32_t bits : {0u, 1u, 0x7F800000u, 0x7F800001u, 0x7FC00000u, 0xFFC00001u, 0x7FFFFFFFu, 0x7F7FFFFFu})
    around(std::bit_cast<float>(bits));
  while (sample.size() % kLanes != 0) sample.push_back(0);
  return sample;
}

template <class Stored, class Widen, class Narrow>
void checkKind(ElemKind kind, Widen widen, Narrow narrow) {
  for (uint32_t first = 0; first < 1u << elemInfo(kind).bits; first += kLanes) {
    Lanes<Stored, kLanes> stored;
    for (int lane = 0; lane < kLanes; ++lane) stored[lane] = static_cast<Stored>(first + static_cast<uint32_t>(lane));
    const F32<kLanes> got = widen(stored);
    for (int lane = 0; lane < kLanes; ++lane) {
      const double want = floatFromBits(kind, stored[lane]);
      ASSERT_EQ(std::signbit(got[lane]), std::signbit(want)) << "stored " << int{stored[lane]};
      if (std::isnan(want))
        ASSERT_TRUE(std::isnan(got[lane])) << "stored " << int{stored[lane]};
      else
        ASSERT_EQ(got[lane], want) << "stored " << int{stored[lane]};
    }
  }
  const std::vector<float> sample = sampleFor(kind);
  const bool scale = kind == ElemKind::Float8E8M0;
  for (const bool saturate : {false, true})
    for (const ScaleRounding rounding : {ScaleRounding::Nearest, ScaleRounding::Up, ScaleRounding::Down}) {
      if (!scale && rounding != ScaleRounding::Nearest) continue;
      for (size_t first = 0; first < sample.size(); first += kLanes) {
        F32<kLanes> values;
        for (int lane = 0; lane < kLanes; ++lane) values[lane] = sample[first + static_cast<size_t>(lane)];
        const Lanes<Stored, kLanes> got = narrow(values, saturate, static_cast<int>(rounding));
        for (int lane = 0; lane < kLanes; ++lane) {
          ASSERT_EQ(got[lane], floatToBits(kind, values[lane], saturate, rounding)) << "value " << values[lane];
          // A double that is not an f32 must not be rounded to one on its way.
          const double finer = std::nextafter(static_cast<double>(values[lane]), 0.0);
          const auto once = narrow(F64<1>(finer), saturate, static_cast<int>(rounding));
          ASSERT_EQ(once[0], floatToBits(kind, finer, saturate, rounding)) << "value " << finer;
        }
      }
    }
}

template <FloatFormat F, class Stored>
void checkFormat(ElemKind kind) {
  checkKind<Stored>(
      kind, [](auto stored) { return widenFloat<F>(stored); },
      [](auto value, bool saturate, int) { return narrowFloat<F, Stored>(value, saturate); });
}

TEST(KernelsNarrowFloats, Float16) { checkFormat<kFloat16Format, uint16_t>(ElemKind::Float16); }
TEST(KernelsNarrowFloats, BFloat16) { checkFormat<kBFloat16Format, uint16_t>(ElemKind::BFloat16); }
TEST(KernelsNarrowFloats, Float8E4M3FN) { checkFormat<kE4M3FNFormat, uint8_t>(ElemKind::Float8E4M3FN); }
TEST(KernelsNarrowFloats, Float8E4M3FNUZ) { checkFormat<kE4M3FNUZFormat, uint8_t>(ElemKind::Float8E4M3FNUZ); }
TEST(KernelsNarrowFloats, Float8E5M2) { checkFormat<kE5M2Format, uint8_t>(ElemKind::Float8E5M2); }
TEST(KernelsNarrowFloats, Float8E5M2FNUZ) { checkFormat<kE5M2FNUZFormat, uint8_t>(ElemKind::Float8E5M2FNUZ); }
TEST(KernelsNarrowFloats, Float4E2M1) { checkFormat<kE2M1Format, uint8_t>(ElemKind::Float4E2M1); }
TEST(KernelsNarrowFloats, Float8E8M0) {
  checkKind<uint8_t>(
      ElemKind::Float8E8M0, [](auto stored) { return widenScale(stored); },
      [](auto value, bool saturate, int rounding) { return narrowScale(value, saturate, rounding); });
}

}  // namespace
}  // namespace aglow::cpu
#endif
