// Reductions, scans, and selection of the largest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/reference_harness.h"

namespace aglow {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using Ints = std::vector<int64_t>;
using enum ElemKind;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Attrs reduceBy(const char* kind, Ints axes) { return attrsOf("Reduce").set("kind", kind).set("axes", std::move(axes)); }

TEST(Reduce, CombinesAnyAxes) {
  const Tensor x = counted(Int64, {2, 3, 2});
  EXPECT_THAT(runOne(reduceBy("sum", {0}), {x}).toInts(), ElementsAre(6, 8, 10, 12, 14, 16));
  EXPECT_THAT(runOne(reduceBy("sum", {1}), {x}).toInts(), ElementsAre(6, 9, 24, 27));
  EXPECT_THAT(runOne(reduceBy("sum", {2}), {x}).toInts(), ElementsAre(1, 5, 9, 13, 17, 21));
  EXPECT_THAT(runOne(reduceBy("sum", {0, 2}), {x}).toInts(), ElementsAre(14, 22, 30));
  EXPECT_THAT(runOne(reduceBy("max", {0, 1}), {x}).toInts(), ElementsAre(10, 11));
  EXPECT_THAT(runOne(reduceBy("min", {1, 2}), {x}).toInts(), ElementsAre(0, 6));
  EXPECT_THAT(runOne(reduceBy("prod", {0, 1, 2}), {x}).toInts(), ElementsAre(0));
  EXPECT_EQ(runOne(reduceBy("sum", {}), {x}), x);
  EXPECT_THAT(runOne(reduceBy("sum", {}), {f32({}, {3})}).doubles(), ElementsAre(3));
}

TEST(Reduce, TakesRowsLongerThanAChunk) {
  const Tensor x = counted(Float64, {3, 2500});
  EXPECT_THAT(runOne(reduceBy("sum", {1}), {x}).doubles(), ElementsAre(3123750, 9373750, 15623750));
  const std::vector<double> columns = runOne(reduceBy("sum", {0}), {x}).doubles();
  EXPECT_EQ(columns[0], 7500);
  EXPECT_EQ(columns[2499], 7500 + 3 * 2499);
}

TEST(Reduce, TruncatesMeansOfIntegers) {
  EXPECT_THAT(runOne(reduceBy("mean", {0}), {ints(Int32, {-3, -4})}).toInts(), ElementsAre(-3));
  EXPECT_THAT(runOne(reduceBy("mean", {0}), {ints(UInt8, {255, 254})}).toInts(), ElementsAre(254));
  EXPECT_THAT(runOne(reduceBy("mean", {0}), {reals(Float32, {1, 2})}).doubles(), ElementsAre(1.5));
}

TEST(Reduce, GivesNeutralValuesOverNothing) {
  const auto over = [](const char* kind, ElemKind elem) {
    return runOne(reduceBy(kind, {0}), {Tensor(Type(elem, {0, 2}))}).doubles();
  };
  EXPECT_THAT(over("sum", Float32), Each(0));
  EXPECT_THAT(over("prod", Int8), Each(1));
  EXPECT_THAT(over("max", Float32), Each(-kInf));
  EXPECT_THAT(over("min", Float16), Each(kInf));
  EXPECT_THAT(over("max", Float8E4M3FN), Each(-448));
  EXPECT_THAT(over("max", Float8E5M2FNUZ), Each(-57344));
  EXPECT_THAT(over("min", Float4E2M1), Each(6));
  EXPECT_THAT(over("max", Float8E8M0), Each(0x1p-127));
  EXPECT_THAT(over("min", Float8E8M0), Each(0x1p127));
  EXPECT_THAT(over("max", Int8), Each(-128));
  EXPECT_THAT(over("min", Int4), Each(7));
  EXPECT_THAT(over("max", UInt16), Each(0));
  EXPECT_THAT(over("min", UInt2), Each(3));
  EXPECT_THAT(over("mean", Int32), Each(0));
  EXPECT_TRUE(std::isnan(over("mean", Float32)[0]));
  EXPECT_THAT(runOne(reduceBy("min", {0}), {Tensor(Type(Int64, {0}))}).toInts(),
              ElementsAre(std::numeric_limits<int64_t>::max()));
  EXPECT_THAT(runOne(reduceBy("min", {0}), {Tensor(Type(UInt64, {0}))}).toInts(), ElementsAre(-1));
  EXPECT_THAT(runOne(reduceBy("sum", {0}), {Tensor(Type(Float32, {3, 0}))}).doubles(), IsEmpty());
}

TEST(Reduce, AsksForAnyAndAllOfBools) {
  const Tensor x = Tensor::of(Type(Bool, {3, 2}), Ints{0, 0, 0, 1, 1, 1});
  EXPECT_THAT(runOne(reduceBy("max", {1}), {x}).toInts(), ElementsAre(0, 1, 1));
  EXPECT_THAT(runOne(reduceBy("min", {1}), {x}).toInts(), ElementsAre(0, 0, 1));
  EXPECT_THAT(runOne(reduceBy("min", {0}), {Tensor(Type(Bool, {0}))}).toInts(), ElementsAre(1));
}

TEST(Reduce, KeepsNanAndWraps) {
  EXPECT_TRUE(std::isnan(runOne(reduceBy("max", {0}), {f32({3}, {1, kNan, 2})}).doubles()[0]));
  EXPECT_TRUE(std::isnan(runOne(reduceBy("min", {0}), {f32({3}, {1, kNan, 2})}).doubles()[0]));
  EXPECT_THAT(runOne(reduceBy("sum", {0}), {ints(Int8, {100, 100})}).toInts(), ElementsAre(-56));
  EXPECT_THAT(runOne(reduceBy("sum", {0}), {f32({3}, {1e8, 1, -1e8})}).doubles(), ElementsAre(1));
}

TEST(ArgReduce, NamesTheFirstOrLast) {
  const Tensor x = f32({2, 4}, {1, 5, 5, 0, 3, 3, 3, 3});
  const Attrs largest = attrsOf("ArgReduce").set("axis", int64_t{1});
  EXPECT_THAT(runOne(largest, {x}).toInts(), ElementsAre(1, 0));
  EXPECT_THAT(runOne(Attrs(largest).set("last", int64_t{1}), {x}).toInts(), ElementsAre(2, 3));
  EXPECT_THAT(runOne(Attrs(largest).set("kind", "min"), {x}).toInts(), ElementsAre(3, 0));
  EXPECT_THAT(runOne(attrsOf("ArgReduce"), {x}).toInts(), ElementsAre(1, 0, 0, 1));
}

TEST(ArgReduce, LetsNanWin) {
  const Tensor x = f32({5}, {1, kNan, 9, kNan, 0});
  for (const char* kind : {"max", "min"}) {
    const Attrs attrs = attrsOf("ArgReduce").set("kind", kind);
    EXPECT_THAT(runOne(attrs, {x}).toInts(), ElementsAre(1));
    EXPECT_THAT(runOne(Attrs(attrs).set("last", int64_t{1}), {x}).toInts(), ElementsAre(3));
  }
  EXPECT_THAT(runOne("ArgReduce", {ints(UInt64, {1, -1, 2})}).toInts(), ElementsAre(1));
}

TEST(Scan, RunsInEveryMode) {
  const Tensor x = i64({4}, {1, 2, 3, 4});
  const auto scan = [&](const char* kind, bool exclusive, bool reverse) {
    return runOne(
               attrsOf("Scan").set("kind", kind).set("exclusive", int64_t{exclusive}).set("reverse", int64_t{reverse}),
               {x})
        .toInts();
  };
  EXPECT_THAT(scan("sum", false, false), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(scan("sum", true, false), ElementsAre(0, 1, 3, 6));
  EXPECT_THAT(scan("sum", false, true), ElementsAre(10, 9, 7, 4));
  EXPECT_THAT(scan("sum", true, true), ElementsAre(9, 7, 4, 0));
  EXPECT_THAT(scan("prod", false, false), ElementsAre(1, 2, 6, 24));
  EXPECT_THAT(scan("prod", true, true), ElementsAre(24, 12, 4, 1));
}

TEST(Scan, RunsAlongAnyAxis) {
  const Tensor x = counted(Float32, {2, 2, 2});
  EXPECT_THAT(runOne(attrsOf("Scan").set("axis", int64_t{1}), {x}).doubles(), ElementsAre(0, 1, 2, 4, 4, 5, 10, 12));
  EXPECT_THAT(runOne("Scan", {Tensor(Type(Float32, {0}))}).doubles(), IsEmpty());
  // The running sum itself is never rounded.
  EXPECT_THAT(runOne("Scan", {reals(Float16, {2048, 1, 1})}).doubles(), ElementsAre(2048, 2048, 2050));
}

TEST(TopK, SortsAndKeepsTheOrderOfEquals) {
  const auto top = [](bool largest, int64_t k, const Tensor& x, int64_t axis) {
    const auto results = runOp(attrsOf("TopK").set("k", k).set("axis", axis).set("largest", int64_t{largest}), {x});
    AGLOW_CHECK(results.ok(), results.error().text());
    return std::pair(results->front().doubles(), results->back().toInts());
  };
  const Tensor x = f32({6}, {2, 7, 7, 1, 2, 7});
  EXPECT_EQ(top(true, 4, x, 0), (std::pair(std::vector<double>{7, 7, 7, 2}, Ints{1, 2, 5, 0})));
  EXPECT_EQ(top(false, 3, x, 0), (std::pair(std::vector<double>{1, 2, 2}, Ints{3, 0, 4})));
  EXPECT_EQ(top(true, 0, x, 0), (std::pair(std::vector<double>{}, Ints{})));
  // Columns of [[0,1],[2,3],[4,5]].
  EXPECT_EQ(top(true, 2, counted(Float32, {3, 2}), 0), (std::pair(std::vector<double>{4, 5, 2, 3}, Ints{2, 2, 1, 1})));
}

TEST(TopK, TakesNanForTheLargest) {
  const Tensor x = f32({4}, {1, kNan, kInf, -1});
  const auto largest = runOp(attrsOf("TopK").set("k", int64_t{2}), {x});
  EXPECT_THAT(largest->back().toInts(), ElementsAre(1, 2));
  const auto smallest = runOp(attrsOf("TopK").set("k", int64_t{4}).set("largest", int64_t{0}), {x});
  EXPECT_THAT(smallest->back().toInts(), ElementsAre(3, 0, 2, 1));
}

}  // namespace
}  // namespace aglow
