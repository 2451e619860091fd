// Operators that move elements, read and write at computed places, or convert between kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/reference_harness.h"

namespace aglow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ints = std::vector<int64_t>;
using enum ElemKind;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Transpose, PermutesAxesOfEveryElementSize) {
  for (const ElemKind kind : {Int8, Float16, Float32, Int64}) {
    const Attrs attrs = attrsOf("Transpose").set("perm", Ints{2, 0, 1});
    EXPECT_THAT(runOne(attrs, {counted(kind, {2, 1, 3})}).toInts(), ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_THAT(runOne(Attrs(attrs).set("perm", Ints{1, 2, 0}), {counted(kind, {2, 3, 2})}).toInts(),
                ElementsAre(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11));
  }
  EXPECT_THAT(runOne("Transpose", {f32({}, {5})}).doubles(), ElementsAre(5));
  EXPECT_THAT(runOne(attrsOf("Transpose").set("perm", Ints{1, 0}), {Tensor(Type(Int8, {0, 3}))}).toInts(), IsEmpty());
}

TEST(Slice, StepsForwardsAndBackwards) {
  const Tensor x = counted(Int32, {4, 5});
  const auto slice = [&](Ints starts, Ints sizes, Ints steps) {
    return runOne(attrsOf("Slice").set("starts", starts).set("sizes", sizes).set("steps", steps), {x}).toInts();
  };
  EXPECT_THAT(slice({1, 1}, {2, 3}, {}), ElementsAre(6, 7, 8, 11, 12, 13));
  EXPECT_THAT(slice({3, 4}, {2, 3}, {-3, -2}), ElementsAre(19, 17, 15, 4, 2, 0));
  EXPECT_THAT(slice({2, 3}, {1, 1}, {1000000007, -9}), ElementsAre(13));
  EXPECT_THAT(slice({99, 0}, {0, 2}, {}), IsEmpty());
}

TEST(Concat, JoinsAlongAnyAxis) {
  const Tensor a = counted(Int8, {2, 2});
  const Tensor b = Tensor::of(Type(Int8, {2, 1}), Ints{8, 9});
  const Tensor none(Type(Int8, {2, 0}));
  EXPECT_THAT(runOne(attrsOf("Concat").set("axis", int64_t{1}), {a, none, b, a}).toInts(),
              ElementsAre(0, 1, 8, 0, 1, 2, 3, 9, 2, 3));
  EXPECT_THAT(runOne("Concat", {a, a}).toInts(), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
}

TEST(Pad, PutsAValueAround) {
  const Attrs attrs = attrsOf("Pad").set("before", Ints{1, 0}).set("after", Ints{0, 2});
  EXPECT_THAT(runOne(attrs, {f32({1, 2}, {1, 2}), f32({}, {-1})}).doubles(), ElementsAre(-1, -1, -1, -1, 1, 2, -1, -1));
  EXPECT_THAT(runOne(attrs, {Tensor(Type(Float32, {0, 1})), f32({}, {7})}).doubles(), ElementsAre(7, 7, 7));
}

TEST(Splat, FillsEveryKind) {
  for (const ElemKind kind : {Float32, Float16, Int4, UInt64, Float8E4M3FN}) {
    const Attrs attrs = attrsOf("Splat").set("value", 3.0).set("elem", kind).set("shape", Ints{2});
    EXPECT_THAT(runOne(attrs, {}).doubles(), ElementsAre(3, 3)) << elemName(kind);
  }
  EXPECT_THAT(runOne(attrsOf("Splat").set("value", 0.5).set("elem", Bool), {}).toInts(), ElementsAre(1));
}

TEST(Reshape, CopiesBytes) {
  const Attrs attrs = attrsOf("Reshape").set("shape", Ints{3, 2});
  const Tensor y = runOne(attrs, {counted(Int16, {2, 3})});
  EXPECT_EQ(y.type().text(), "i16[3,2]");
  EXPECT_THAT(y.toInts(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Cast, ConvertsBetweenDomains) {
  const auto cast = [](const Tensor& x, ElemKind to, bool saturate = true) {
    return runOne(attrsOf("Cast").set("to", to).set("saturate", int64_t{saturate}), {x});
  };
  EXPECT_THAT(cast(f32({4}, {1.9, -1.9, kNan, 1e30}), Int32).toInts(), ElementsAre(1, -1, 0, 2147483647));
  EXPECT_THAT(cast(f32({3}, {0, kNan, -0.1}), Bool).toInts(), ElementsAre(0, 1, 1));
  EXPECT_THAT(cast(ints(Bool, {0, 1}), Float16).doubles(), ElementsAre(0, 1));
  EXPECT_THAT(cast(ints(Int64, {-1, 300}), UInt8).toInts(), ElementsAre(255, 44));
  EXPECT_THAT(cast(ints(UInt64, {-1}), Float32).doubles(), ElementsAre(0x1p64));
  EXPECT_THAT(cast(f32({2}, {1000, -1000}), Float8E4M3FN).doubles(), ElementsAre(448, -448));
  EXPECT_TRUE(std::isnan(cast(f32({1}, {1000}), Float8E4M3FN, false).doubles()[0]));
  // 2^24 + 1 rounds once, not through f32 on the way to i64.
  EXPECT_THAT(cast(reals(Float64, {16777217}), Int64).toInts(), ElementsAre(16777217));
  EXPECT_EQ(cast(counted(Int16, {3000}), Float64).doubles()[2999], 2999);
}

TEST(Gather, TakesSlices) {
  const Tensor x = counted(Float32, {2, 3, 2});
  const Attrs middle = attrsOf("Gather").set("axis", int64_t{1});
  const Tensor y = runOne(middle, {x, i64({2, 1}, {2, -3})});
  EXPECT_EQ(y.type().text(), "f32[2,2,1,2]");
  EXPECT_THAT(y.doubles(), ElementsAre(4, 5, 0, 1, 10, 11, 6, 7));
  EXPECT_THAT(runOne("Gather", {counted(Int8, {4}), Tensor::of(Type(Int32, {}), Ints{3})}).toInts(), ElementsAre(3));
  EXPECT_THAT(runOne("Gather", {x, i64({0}, {})}).doubles(), IsEmpty());
}

TEST(Gather, RefusesIndicesOutside) {
  for (const int64_t index : {int64_t{3}, int64_t{-4}, std::numeric_limits<int64_t>::min()}) {
    const auto y = runOp(attrsOf("Gather").set("axis", int64_t{1}), {counted(Float32, {2, 3}), i64({2}, {0, index})});
    ASSERT_FALSE(y.ok());
    EXPECT_EQ(y.error().code, Code::RuntimeValue);
    EXPECT_EQ(y.error().message, "index " + std::to_string(index) + " lies outside of axis 1, whose extent is 3");
  }
  EXPECT_EQ(runOp(attrsOf("Gather"), {Tensor(Type(Float32, {0})), i64({1}, {0})}).error().code, Code::RuntimeValue);
}

Attrs scatterBy(const char* reduction) { return attrsOf("Scatter").set("reduction", reduction); }

TEST(Scatter, ReplacesAndCombinesRows) {
  const Tensor data = counted(Int32, {3, 2});
  const Tensor at = i64({3}, {2, 0, -1});
  const Tensor updates = Tensor::of(Type(Int32, {3, 2}), Ints{10, 20, 30, -40, 50, 2});
  EXPECT_THAT(runOne(scatterBy("none"), {data, at, updates}).toInts(), ElementsAre(30, -40, 2, 3, 50, 2));
  EXPECT_THAT(runOne(scatterBy("add"), {data, at, updates}).toInts(), ElementsAre(30, -39, 2, 3, 64, 27));
  EXPECT_THAT(runOne(scatterBy("mul"), {data, at, updates}).toInts(), ElementsAre(0, -40, 2, 3, 2000, 200));
  EXPECT_THAT(runOne(scatterBy("max"), {data, at, updates}).toInts(), ElementsAre(30, 1, 2, 3, 50, 20));
  EXPECT_THAT(runOne(scatterBy("min"), {data, at, updates}).toInts(), ElementsAre(0, -40, 2, 3, 4, 2));
}

TEST(Scatter, RoundsOnceHoweverManyUpdatesMeet) {
  const Tensor y = runOne(scatterBy("add"), {reals(Float16, {2048}), i64({2}, {0, 0}), reals(Float16, {1, 1})});
  EXPECT_THAT(y.doubles(), ElementsAre(2050));
}

TEST(Scatter, WorksInPlace) {
  for (const char* reduction : {"none", "add"}) {
    Tensor data = counted(Float32, {3});
    const Tensor at = i64({1}, {1});
    const Tensor updates = f32({1}, {5});
    const std::vector<TensorRef> in{data.ref(), at.ref(), updates.ref()};
    const std::vector<TensorRef> out{data.ref()};
    ASSERT_TRUE(runReference({.attrs = scatterBy(reduction), .in = in, .out = out}).ok());
    EXPECT_THAT(data.doubles(), ElementsAre(0, reduction == std::string("add") ? 6 : 5, 2));
  }
}

TEST(Scatter, RefusesIndicesOutsideBeforeItWrites) {
  Tensor data = counted(Float32, {3});
  const Tensor at = i64({2}, {0, 3});
  const Tensor updates = f32({2}, {5, 5});
  const std::vector<TensorRef> in{data.ref(), at.ref(), updates.ref()};
  const std::vector<TensorRef> out{data.ref()};
  const Status status = runReference({.attrs = scatterBy("none"), .in = in, .out = out});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::RuntimeValue);
  EXPECT_THAT(status.error().message, HasSubstr("index 3 lies outside of axis 0, whose extent is 3"));
  EXPECT_THAT(data.doubles(), ElementsAre(0, 1, 2));
}

Attrs quantizeBy(ElemKind to, std::vector<double> scales, Ints offsets, int64_t axis = -1) {
  return attrsOf("Quantize").set("to", to).set("scales", scales).set("offsets", offsets).set("axis", axis);
}

TEST(Quantize, RoundsToEvenAndSaturates) {
  const Tensor x = f32({9}, {0, 1, 1.25, 0.75, -1.25, 1e9, -1e9, kNan, -HUGE_VAL});
  EXPECT_THAT(runOne(quantizeBy(QInt8, {0.5}, {3}), {x}).toInts(), ElementsAre(3, 5, 5, 5, 1, 127, -128, 3, -128));
  EXPECT_THAT(runOne(quantizeBy(QUInt8, {0.5}, {3}), {x}).toInts(), ElementsAre(3, 5, 5, 5, 1, 255, 0, 3, 0));
  EXPECT_THAT(runOne(quantizeBy(QInt32, {1}, {0}), {f32({2}, {3e9, -3e9})}).toInts(),
              ElementsAre(2147483647, -2147483648));
  // In exact arithmetic 0.35 / 0.1f lies just below the half.
  EXPECT_THAT(runOne(quantizeBy(QInt8, {0.1F}, {0}), {f32({1}, {0.35F})}).toInts(), ElementsAre(4));
}

TEST(Quantize, HasScalesOfItsOwnAlongAnAxis) {
  const Tensor x = f32({2, 3, 2}, {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2});
  const Tensor y = runOne(quantizeBy(QInt16, {1, 0.5, 0.25}, {0, 1, 2}, 1), {x});
  EXPECT_THAT(y.toInts(), ElementsAre(1, 1, 3, 3, 6, 6, 2, 2, 5, 5, 10, 10));
  EXPECT_EQ(runOne("Dequantize", {y}), x);
}

TEST(Dequantize, GivesRealValues) {
  const Tensor q = runOne(quantizeBy(QInt8, {0.5}, {-3}), {f32({2}, {1.5, -2})});
  EXPECT_THAT(runOne(attrsOf("Dequantize").set("to", Float64), {q}).doubles(), ElementsAre(1.5, -2));
  EXPECT_THAT(runOne("Dequantize", {Tensor(*Type::quantized(QInt8, {0}, {-1, {1}, {0}}))}).doubles(), IsEmpty());
}

}  // namespace
}  // namespace aglow
