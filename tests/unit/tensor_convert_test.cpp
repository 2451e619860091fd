// Conversions between stored elements and the wide domains, with known bit patterns of every narrow float.
#include "tensor/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace aglow {
namespace {

using testing::ElementsAre;
using enum ElemKind;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr ElemKind kSigned[] = {Float16,    BFloat16,       Float8E4M3FN, Float8E4M3FNUZ,
                                Float8E5M2, Float8E5M2FNUZ, Float4E2M1};

struct Pattern {
  ElemKind kind;
  uint64_t bits;
  double value;
};

// Ends of the ranges: the smallest subnormal and normal, one, the largest value, and what lies beyond.
const Pattern kPatterns[] = {
    {Float16, 0x0001, 0x1p-24},
    {Float16, 0x03FF, 1023 * 0x1p-24},
    {Float16, 0x0400, 0x1p-14},
    {Float16, 0x3C00, 1},
    {Float16, 0xC000, -2},
    {Float16, 0x7BFF, 65504},
    {Float16, 0x7C00, kInf},
    {Float16, 0xFC00, -kInf},
    {Float16, 0x7E00, kNan},
    {BFloat16, 0x0001, 0x1p-133},
    {BFloat16, 0x0080, 0x1p-126},
    {BFloat16, 0x3F80, 1},
    {BFloat16, 0x7F7F, 0x1.FEp127},
    {BFloat16, 0x7F80, kInf},
    {BFloat16, 0xFFC0, kNan},
    {Float8E4M3FN, 0x01, 0x1p-9},
    {Float8E4M3FN, 0x08, 0x1p-6},
    {Float8E4M3FN, 0x38, 1},
    {Float8E4M3FN, 0x7E, 448},
    {Float8E4M3FN, 0xFE, -448},
    {Float8E4M3FN, 0x7F, kNan},
    {Float8E4M3FN, 0xFF, kNan},
    {Float8E4M3FNUZ, 0x01, 0x1p-10},
    {Float8E4M3FNUZ, 0x08, 0x1p-7},
    {Float8E4M3FNUZ, 0x40, 1},
    {Float8E4M3FNUZ, 0x7F, 240},
    {Float8E4M3FNUZ, 0xFF, -240},
    {Float8E4M3FNUZ, 0x80, kNan},
    {Float8E5M2, 0x01, 0x1p-16},
    {Float8E5M2, 0x04, 0x1p-14},
    {Float8E5M2, 0x3C, 1},
    {Float8E5M2, 0x7B, 57344},
    {Float8E5M2, 0x7C, kInf},
    {Float8E5M2, 0xFC, -kInf},
    {Float8E5M2, 0x7E, kNan},
    {Float8E5M2FNUZ, 0x01, 0x1p-17},
    {Float8E5M2FNUZ, 0x04, 0x1p-15},
    {Float8E5M2FNUZ, 0x40, 1},
    {Float8E5M2FNUZ, 0x7F, 57344},
    {Float8E5M2FNUZ, 0x80, kNan},
    {Float8E8M0, 0x00, 0x1p-127},
    {Float8E8M0, 0x7F, 1},
    {Float8E8M0, 0x80, 2},
    {Float8E8M0, 0xFE, 0x1p127},
    {Float8E8M0, 0xFF, kNan},
    {Float4E2M1, 0x0, 0},
    {Float4E2M1, 0x1, 0.5},
    {Float4E2M1, 0x2, 1},
    {Float4E2M1, 0x3, 1.5},
    {Float4E2M1, 0x4, 2},
    {Float4E2M1, 0x5, 3},
    {Float4E2M1, 0x6, 4},
    {Float4E2M1, 0x7, 6},
    {Float4E2M1, 0xF, -6},
    {Float32, 0x3F800000, 1},
    {Float64, 0x3FF0000000000000, 1},
};

TEST(NarrowFloat, KnownPatternsDecodeAndEncode) {
  for (const auto& [kind, bits, value] : kPatterns) {
    const double got = floatFromBits(kind, bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(got)) << elemName(kind) << " " << bits;
      EXPECT_EQ(floatToBits(kind, got), bits) << elemName(kind);
    } else {
      EXPECT_EQ(got, value) << elemName(kind) << " " << bits;
      EXPECT_EQ(floatToBits(kind, value), bits) << elemName(kind) << " " << value;
    }
  }
}

TEST(NarrowFloat, EveryNumberComesBack) {
  for (int i = 0; i < kElemKinds; ++i) {
    const auto kind = static_cast<ElemKind>(i);
    if (!isFloat(kind) || elemInfo(kind).bits > 16) continue;
    for (uint64_t bits = 0; bits < uint64_t{1} << elemInfo(kind).bits; ++bits) {
      const double value = floatFromBits(kind, bits);
      if (std::isnan(value)) continue;
      ASSERT_EQ(floatToBits(kind, value), bits) << elemName(kind) << " " << value;
    }
  }
}

// Between two neighbours the middle goes to the even pattern, and the least step off the middle to the nearer one; a
// value rounded by way of a float would miss that step.
TEST(NarrowFloat, RoundsToNearestEvenInOneStep) {
  for (const ElemKind kind : kSigned) {
    const uint64_t sign = uint64_t{1} << (elemInfo(kind).bits - 1);
    for (uint64_t bits = 0; bits + 1 < sign; ++bits) {
      const double low = floatFromBits(kind, bits);
      const double high = floatFromBits(kind, bits + 1);
      if (!std::isfinite(high)) break;
      const double middle = (low + high) / 2;
      ASSERT_EQ(floatToBits(kind, middle), bits + (bits & 1)) << elemName(kind) << " " << middle;
      ASSERT_EQ(floatToBits(kind, std::nextafter(middle, kInf)), bits + 1) << elemName(kind) << " " << middle;
      ASSERT_EQ(floatToBits(kind, std::nextafter(middle, 0)), bits) << elemName(kind) << " " << middle;
      if (bits == 0) continue;  // the negative one is zero, with or without a sign
      ASSERT_EQ(floatToBits(kind, -std::nextafter(middle, 0)), bits | sign) << elemName(kind);
    }
  }
}

struct Edge {
  ElemKind kind;
  double value;
  uint64_t bits;
  uint64_t saturated;
};

TEST(NarrowFloat, OverflowIsAsTheFormatSays) {
  const Edge edges[] = {
      // The last value that still rounds to the largest, and the first that does not.
      {Float8E4M3FN, 464, 0x7E, 0x7E},
      {Float8E4M3FN, 464.001, 0x7F, 0x7E},
      {Float8E4M3FN, -1e6, 0xFF, 0xFE},
      {Float8E4M3FN, kInf, 0x7F, 0x7E},
      {Float8E4M3FN, -kInf, 0xFF, 0xFE},
      {Float8E4M3FN, kNan, 0x7F, 0x7F},
      {Float8E4M3FN, -kNan, 0xFF, 0xFF},
      {Float8E4M3FNUZ, 247.999, 0x7F, 0x7F},
      {Float8E4M3FNUZ, 248, 0x80, 0x7F},
      {Float8E4M3FNUZ, -kInf, 0x80, 0xFF},
      {Float8E4M3FNUZ, -kNan, 0x80, 0x80},
      {Float8E5M2, 61439, 0x7B, 0x7B},
      {Float8E5M2, 61440, 0x7C, 0x7B},
      {Float8E5M2, -1e300, 0xFC, 0xFB},
      {Float8E5M2, kInf, 0x7C, 0x7B},
      {Float8E5M2, -kNan, 0xFE, 0xFE},
      {Float8E5M2FNUZ, 61440, 0x80, 0x7F},
      {Float8E5M2FNUZ, -61440, 0x80, 0xFF},
      {Float4E2M1, 1e6, 0x7, 0x7},
      {Float4E2M1, -kInf, 0xF, 0xF},
      {Float4E2M1, kNan, 0x8, 0x8},
      // Saturation is a matter of the 8-bit kinds.
      {Float16, 65519.999, 0x7BFF, 0x7BFF},
      {Float16, 65520, 0x7C00, 0x7C00},
      {BFloat16, -1e39, 0xFF80, 0xFF80},
      {Float32, 1e39, 0x7F800000, 0x7F800000},
  };
  for (const auto& [kind, value, bits, saturated] : edges) {
    EXPECT_EQ(floatToBits(kind, value, false), bits) << elemName(kind) << " " << value;
    EXPECT_EQ(floatToBits(kind, value, true), saturated) << elemName(kind) << " " << value;
  }
}

TEST(NarrowFloat, ZeroKeepsItsSignWhereThereIsOne) {
  for (const ElemKind kind : kSigned) {
    const bool unsignedZero = kind == Float8E4M3FNUZ || kind == Float8E5M2FNUZ;
    const uint64_t minusZero = unsignedZero ? 0 : uint64_t{1} << (elemInfo(kind).bits - 1);
    EXPECT_EQ(floatToBits(kind, -0.0), minusZero) << elemName(kind);
    EXPECT_EQ(floatToBits(kind, -1e-300), minusZero) << elemName(kind);
    EXPECT_EQ(floatToBits(kind, -std::numeric_limits<double>::denorm_min()), minusZero) << elemName(kind);
    EXPECT_EQ(floatToBits(kind, std::numeric_limits<double>::denorm_min()), 0u) << elemName(kind);
    EXPECT_EQ(std::signbit(floatFromBits(kind, minusZero)), !unsignedZero) << elemName(kind);
  }
}

TEST(ScaleFormat, RoundsAsAsked) {
  using enum ScaleRounding;
  const auto bits = [](double value, ScaleRounding rounding, bool saturate) {
    return floatToBits(Float8E8M0, value, saturate, rounding);
  };
  for (const bool saturate : {false, true}) {
    EXPECT_EQ(bits(1.0, Up, saturate), 127u);
    EXPECT_EQ(bits(1.1, Up, saturate), 128u);
    EXPECT_EQ(bits(1.9, Down, saturate), 127u);
    EXPECT_EQ(bits(1.4999, Nearest, saturate), 127u);
    EXPECT_EQ(bits(1.5, Nearest, saturate), 128u);
    EXPECT_EQ(bits(0x1.7p127, Nearest, saturate), 254u);
    EXPECT_EQ(bits(0x1.8p-128, Nearest, saturate), 0u);
    EXPECT_EQ(bits(kNan, Up, saturate), 255u);
    EXPECT_EQ(bits(-1, Up, saturate), 255u);
  }
  for (const double big : {0x1.8p127, 0x1p128, 1e300, kInf}) {
    EXPECT_EQ(bits(big, Nearest, false), 255u) << big;
    EXPECT_EQ(bits(big, Nearest, true), 254u) << big;
  }
  for (const double small : {0.0, -0.0, 0x1p-128, 1e-300, 5e-324}) {
    EXPECT_EQ(bits(small, Nearest, false), 255u) << small;
    EXPECT_EQ(bits(small, Nearest, true), 0u) << small;
  }
}

// One value to the kind and back to another domain.
template <class To, class From>
To through(ElemKind kind, From value) {
  uint64_t storage = 0;
  To out{};
  narrow(kind, &value, 1, reinterpret_cast<std::byte*>(&storage), 0);
  widen(kind, reinterpret_cast<const std::byte*>(&storage), 0, 1, 1, &out);
  return out;
}

TEST(Convert, IntegersWrap) {
  EXPECT_EQ(through<int64_t>(Int8, int64_t{200}), -56);
  EXPECT_EQ(through<int64_t>(UInt8, int64_t{-1}), 255);
  EXPECT_EQ(through<int64_t>(Int4, int64_t{8}), -8);
  EXPECT_EQ(through<int64_t>(Int4, int64_t{-9}), 7);
  EXPECT_EQ(through<int64_t>(UInt4, int64_t{-9}), 7);
  EXPECT_EQ(through<int64_t>(Int2, int64_t{2}), -2);
  EXPECT_EQ(through<int64_t>(UInt2, int64_t{6}), 2);
  EXPECT_EQ(through<int64_t>(Int32, (int64_t{1} << 32) + 5), 5);
  EXPECT_EQ(through<uint64_t>(Int64, int64_t{-1}), ~uint64_t{0});
  EXPECT_EQ(through<int64_t>(UInt64, ~uint64_t{0}), -1);
  EXPECT_EQ(through<int64_t>(QInt8, int64_t{-128}), -128);
  EXPECT_EQ(through<int64_t>(QUInt8, int64_t{255}), 255);
}

TEST(Convert, FloatsTruncateAndSaturateInWideIntegers) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(through<int64_t>(Int32, -1.9), -1);
  EXPECT_EQ(through<int64_t>(Int32, 1e10), 2147483647);
  EXPECT_EQ(through<int64_t>(Int32, 2147483647.5), 2147483647);
  EXPECT_EQ(through<int64_t>(Int32, -kInf), -2147483648);
  EXPECT_EQ(through<int64_t>(Int32, kNan), 0);
  EXPECT_EQ(through<int64_t>(UInt32, 3e9), 3000000000);
  EXPECT_EQ(through<int64_t>(UInt32, -0.5), 0);
  EXPECT_EQ(through<int64_t>(UInt32, -5.0), 0);
  EXPECT_EQ(through<int64_t>(Int64, 0x1p63), kMax);
  EXPECT_EQ(through<int64_t>(Int64, -0x1p63), kMin);
  EXPECT_EQ(through<int64_t>(Int64, -0x1p70), kMin);
  EXPECT_EQ(through<int64_t>(Int64, 0x1.FFFFFFFFFFFFFp62), 0x7FFFFFFFFFFFFC00);
  EXPECT_EQ(through<uint64_t>(UInt64, 0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(through<uint64_t>(UInt64, 0x1p64), ~uint64_t{0});
}

// What numpy and the ONNX test data have, where the specification leaves it open.
TEST(Convert, FloatsWrapInNarrowIntegers) {
  EXPECT_EQ(through<int64_t>(Int8, 300.7), 44);
  EXPECT_EQ(through<int64_t>(UInt8, -1.0), 255);
  EXPECT_EQ(through<int64_t>(Int16, 40000.0), -25536);
  EXPECT_EQ(through<int64_t>(UInt4, -9.0), 7);
  EXPECT_EQ(through<int64_t>(Int4, 15.0), -1);
  EXPECT_EQ(through<int64_t>(Int2, -3.0), 1);
  EXPECT_EQ(through<int64_t>(UInt8, kNan), 0);
}

TEST(Convert, BoolIsNotZero) {
  EXPECT_EQ(through<double>(Bool, 0.5), 1);
  EXPECT_EQ(through<double>(Bool, -0.0), 0);
  EXPECT_EQ(through<double>(Bool, kNan), 1);
  EXPECT_EQ(through<int64_t>(Bool, int64_t{256}), 1);
  const std::byte odd{7};
  uint64_t value = 0;
  widen(Bool, &odd, 0, 1, 1, &value);
  EXPECT_EQ(value, 1u);
}

TEST(Convert, IntegersRoundOnceToFloats) {
  EXPECT_EQ(through<double>(Float32, int64_t{16777217}), 16777216);
  // Rounded to a double first, these would tie and go the other way.
  EXPECT_EQ(through<double>(Float32, (int64_t{1} << 60) + (int64_t{1} << 36) + 1), 0x1p60 + 0x1p37);
  EXPECT_EQ(through<double>(BFloat16, (int64_t{1} << 60) + (int64_t{1} << 52) + 1), 0x1p60 + 0x1p53);
  EXPECT_EQ(through<double>(BFloat16, -(int64_t{1} << 60) - (int64_t{1} << 52) - 1), -0x1p60 - 0x1p53);
  EXPECT_EQ(through<double>(BFloat16, (int64_t{1} << 60) + (int64_t{1} << 52)), 0x1p60);
  EXPECT_EQ(through<double>(BFloat16, (uint64_t{1} << 63) + (uint64_t{1} << 55) + 1), 0x1p63 + 0x1p56);
  EXPECT_EQ(through<double>(BFloat16, std::numeric_limits<int64_t>::min()), -0x1p63);
  EXPECT_EQ(through<double>(Float16, int64_t{65519}), 65504);
  EXPECT_EQ(through<double>(Float16, int64_t{65520}), kInf);
  EXPECT_EQ(through<double>(Float8E4M3FN, uint64_t{17}), 16);
  EXPECT_EQ(through<double>(Float8E8M0, int64_t{3}), 4);
}

TEST(Convert, FloatsAreReadAsIntegers) {
  EXPECT_EQ(through<int64_t>(Float16, -2.75), -2);
  EXPECT_EQ(through<uint64_t>(Float32, -2.75), 0u);
  EXPECT_EQ(through<int64_t>(Float8E5M2, kNan), 0);
  EXPECT_EQ(through<int64_t>(Float32, kInf), std::numeric_limits<int64_t>::max());
}

TEST(Convert, ReadsAndWritesAtOffsetsAndStrides) {
  for (const ElemKind kind : {Float32, Float16, Int4, UInt64, Float8E4M3FN}) {
    Tensor t(Type(kind, {6}));
    const double values[] = {1, 2, 3, 4};
    narrow(kind, values, 4, t.mutableData(), 2);
    EXPECT_THAT(t.doubles(), ElementsAre(0, 0, 1, 2, 3, 4)) << elemName(kind);
    double out[3] = {};
    widen(kind, t.data(), 1, 3, 2, out);
    EXPECT_THAT(out, ElementsAre(0, 2, 4)) << elemName(kind);
    widen(kind, t.data(), 5, 3, -1, out);
    EXPECT_THAT(out, ElementsAre(4, 3, 2)) << elemName(kind);
    widen(kind, t.data(), 4, 3, 0, out);
    EXPECT_THAT(out, ElementsAre(3, 3, 3)) << elemName(kind);
  }
}

TEST(Convert, DomainsHoldEveryValue) {
  EXPECT_EQ(domainOf(Float8E8M0), Domain::Float);
  EXPECT_EQ(domainOf(Int2), Domain::Signed);
  EXPECT_EQ(domainOf(QUInt8), Domain::Signed);
  EXPECT_EQ(domainOf(UInt64), Domain::Unsigned);
  EXPECT_EQ(domainOf(Bool), Domain::Unsigned);
  EXPECT_TRUE(inDomain(Domain::Float, [](auto value) { return std::is_same_v<decltype(value), double>; }));
  EXPECT_TRUE(inDomain(Domain::Signed, [](auto value) { return std::is_same_v<decltype(value), int64_t>; }));
  EXPECT_TRUE(inDomain(Domain::Unsigned, [](auto value) { return std::is_same_v<decltype(value), uint64_t>; }));
  EXPECT_THROW(floatFromBits(Int8, 0), InternalError);
}

}  // namespace
}  // namespace aglow
