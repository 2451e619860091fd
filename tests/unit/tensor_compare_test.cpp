// Comparison of tensors: tolerances, special values, and what is said of the worst element.
#include "tensor/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace aglow {
namespace {

using enum ElemKind;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor reals(const std::vector<double>& values, ElemKind kind = Float32) {
  return Tensor::fromDoubles(Type(kind, Shape{static_cast<int64_t>(values.size())}), values);
}

TEST(Compare, EqualTensorsHaveNoWorstElement) {
  const Comparison c = compare(reals({1, 2}), reals({1, 2}), {});
  EXPECT_TRUE(c.agrees());
  EXPECT_EQ(c.worst, -1);
  EXPECT_EQ(c.maxAbs, 0);
  EXPECT_EQ(c.maxRel, 0);
}

TEST(Compare, ToleranceIsRelativeToTheExpected) {
  EXPECT_TRUE(compare(reals({101}), reals({100}), {.atol = 0, .rtol = 0.01}).agrees());
  EXPECT_FALSE(compare(reals({100}), reals({99}), {.atol = 0, .rtol = 0.01}).agrees());
  EXPECT_TRUE(compare(reals({0.5}), reals({0}), {.atol = 0.5, .rtol = 0}).agrees());
}

TEST(Compare, TheWorstIsFurthestBeyondItsTolerance) {
  // 1000 is further off, but within its share.
  const Comparison c = compare(reals({1005, 2.5, 3}), reals({1000, 2, 3}), {.atol = 0, .rtol = 0.01});
  EXPECT_EQ(c.beyond, 1);
  EXPECT_EQ(c.worst, 1);
  EXPECT_EQ(c.maxAbs, 5);
  EXPECT_EQ(c.maxRel, 0.25);
}

TEST(Compare, WithoutToleranceTheWorstIsFurthestApart) {
  EXPECT_EQ(compare(reals({1, 5, 3}), reals({2, 2, 2}), {}).worst, 1);
}

TEST(Compare, SpecialValuesEqualThemselvesAlone) {
  EXPECT_TRUE(compare(reals({kNan, kInf, -kInf}), reals({kNan, kInf, -kInf}), {}).agrees());
  const Tolerance wide{.atol = 1e30, .rtol = 1e30};
  for (const auto& [got, expected] :
       {std::pair{kNan, 1.0}, {1.0, kNan}, {kInf, 1.0}, {1.0, kInf}, {kInf, -kInf}, {kNan, kInf}}) {
    const Comparison c = compare(reals({0, got}), reals({0, expected}), wide);
    EXPECT_EQ(c.beyond, 1) << got << " against " << expected;
    EXPECT_EQ(c.worst, 1);
    EXPECT_EQ(c.maxAbs, kInf);
  }
}

TEST(Compare, IntegersAreExactAtTheEndsOfTheirRange) {
  const int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  const auto one = [](int64_t value) { return Tensor::ints({value}); };
  EXPECT_FALSE(compare(one(high), one(high - 1), {}).agrees());
  EXPECT_EQ(compare(one(high), one(high - 1), {}).maxAbs, 1);
  EXPECT_EQ(compare(one(low), one(high), {}).maxAbs, 0x1p64);
  EXPECT_TRUE(compare(one(3), one(4), {.atol = 1, .rtol = 0}).agrees());
}

TEST(Compare, OtherTypesAreSaid) {
  EXPECT_EQ(compare(reals({1}), reals({1, 2}), {}).typeFault, "f32[1]; expected f32[2]");
  EXPECT_EQ(compare(reals({1}), reals({1}, Float64), {}).typeFault, "f32[1]; expected f64[1]");
}

TEST(Compare, EmptyTensorsAgree) { EXPECT_TRUE(compare(reals({}), reals({}), {}).agrees()); }

TEST(Compare, MoreElementsThanAChunk) {
  std::vector<double> values(10'001, 1);
  const Tensor expected = reals(values);
  values[10'000] = 2;
  EXPECT_EQ(compare(reals(values), expected, {}).worst, 10'000);
}

TEST(Compare, Texts) {
  EXPECT_EQ(indexText(Shape{2, 3, 4}, 23), "[1,2,3]");
  EXPECT_EQ(indexText(Shape{}, 0), "[]");
  EXPECT_EQ(elementText(reals({0.5, -1}), 1), "-1");
  EXPECT_EQ(elementText(Tensor::ints({7, -8}), 1), "-8");
  EXPECT_EQ(elementText(Tensor::fromInts(Type(UInt64, Shape{1}), {-1}), 0), "18446744073709551615");
}

TEST(Compare, TolerancesByKind) {
  EXPECT_EQ(defaultTolerance(Int8).atol, 0);
  EXPECT_EQ(defaultTolerance(Bool).rtol, 0);
  EXPECT_LT(defaultTolerance(Float32).rtol, defaultTolerance(Float16).rtol);
  EXPECT_LT(defaultTolerance(Float16).rtol, defaultTolerance(Float8E4M3FN).rtol);
}

TEST(Statistics, CountsWhatIsNotFinite) {
  const Statistics s = statisticsOf(reals({1, 3, kNan, kInf}));
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 3);
  EXPECT_EQ(s.mean, 2);
  EXPECT_EQ(s.nan, 1);
  EXPECT_EQ(s.infinite, 1);
}

}  // namespace
}  // namespace aglow
