// Products, convolutions and pools, by hand and against the plainest possible loops.
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

TEST(MatMul, MultipliesMatrices) {
  const Tensor y = runOne("MatMul", {f32({2, 3}, {1, 2, 3, 4, 5, 6}), f32({3, 2}, {1, 0, 0, 1, 2, 3})});
  EXPECT_THAT(y.doubles(), ElementsAre(7, 11, 16, 23));
}

TEST(MatMul, StretchesLeadingAxes) {
  const Tensor y = runOne("MatMul", {counted(Int64, {2, 1, 1, 2}), counted(Int64, {3, 2, 1})});
  ASSERT_EQ(y.type().text(), "i64[2,3,1,1]");
  EXPECT_THAT(y.toInts(), ElementsAre(1, 3, 5, 3, 13, 23));
}

TEST(MatMul, AgreesWithPlainLoopsPastOnePanel) {
  const int64_t m = 3, k = 131, n = 277;
  const Tensor a = counted(Int32, {m, k});
  const Tensor b = counted(Int32, {k, n});
  const Ints x = a.toInts(), w = b.toInts(), y = runOne("MatMul", {a, b}).toInts();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int64_t expected = 0;
      for (int64_t l = 0; l < k; ++l) expected += x[static_cast<size_t>(i * k + l)] * w[static_cast<size_t>(l * n + j)];
      ASSERT_EQ(y[static_cast<size_t>(i * n + j)], static_cast<int32_t>(expected)) << i << "," << j;
    }
}

TEST(MatMul, TakesEmptyMatrices) {
  EXPECT_THAT(runOne("MatMul", {f32({2, 0}, {}), f32({0, 2}, {})}).doubles(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(runOne("MatMul", {f32({0, 2}, {}), f32({2, 3}, {1, 2, 3, 4, 5, 6})}).doubles(), IsEmpty());
}

TEST(MatMul, RoundsOnceAndWrapsIntegers) {
  // In f32 the small product would be lost between the large ones.
  EXPECT_THAT(runOne("MatMul", {f32({1, 3}, {1e8, 1, -1e8}), f32({3, 1}, {1, 1, 1})}).doubles(), ElementsAre(1));
  EXPECT_THAT(
      runOne("MatMul", {Tensor::of(Type(Int8, {1, 2}), Ints{100, 100}), Tensor::of(Type(Int8, {2, 1}), Ints{1, 1})})
          .toInts(),
      ElementsAre(-56));
  EXPECT_THAT(runOne("MatMul", {Tensor::of(Type(UInt8, {1, 1}), Ints{255}), Tensor::of(Type(UInt8, {1, 1}), Ints{255})})
                  .toInts(),
              ElementsAre(1));
}

// Convolution and pools as their definition says, one test of a position an element. Two spatial axes.
struct Plain {
  Ints kernel, strides{1, 1}, pads{0, 0, 0, 0}, dilations{1, 1};

  template <class F>
  void taps(int64_t oy, int64_t ox, int64_t height, int64_t width, F f) const {
    for (int64_t ky = 0; ky < kernel[0]; ++ky)
      for (int64_t kx = 0; kx < kernel[1]; ++kx) {
        const int64_t y = oy * strides[0] - pads[0] + ky * dilations[0];
        const int64_t x = ox * strides[1] - pads[1] + kx * dilations[1];
        if (y >= 0 && y < height && x >= 0 && x < width) f(ky * kernel[1] + kx, y * width + x);
      }
  }
  Attrs attrs(std::string_view op) const {
    return attrsOf(op).set("strides", strides).set("pads", pads).set("dilations", dilations);
  }
};

const std::vector<Plain> kWindows{
    {.kernel = {1, 1}},
    {.kernel = {3, 2}},
    {.kernel = {3, 3}, .pads = {1, 1, 1, 1}},
    {.kernel = {2, 3}, .strides = {2, 1}, .pads = {0, 2, 1, 0}},
    {.kernel = {3, 2}, .strides = {1, 3}, .pads = {2, 1, 0, 3}, .dilations = {2, 4}},
    {.kernel = {1, 5}, .strides = {7, 2}, .pads = {0, 4, 0, 4}},
    {.kernel = {5, 6}},
};

TEST(Conv, AgreesWithPlainLoops) {
  const int64_t batch = 2, channels = 4, group = 2, outs = 6, height = 5, width = 6;
  for (const Plain& window : kWindows) {
    const int64_t taps = window.kernel[0] * window.kernel[1];
    const Tensor x = counted(Int64, {batch, channels, height, width});
    const Tensor filter = counted(Int64, {outs, channels / group, window.kernel[0], window.kernel[1]});
    const Tensor bias = i64({outs}, {5, 6, 7, 8, 9, 10});
    const Tensor y = runOne(window.attrs("Conv").set("group", group), {x, filter, bias});
    const Ints xs = x.toInts(), ws = filter.toInts(), ys = y.toInts();
    size_t at = 0;
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t out = 0; out < outs; ++out)
        for (int64_t oy = 0; oy < y.type().dim(2); ++oy)
          for (int64_t ox = 0; ox < y.type().dim(3); ++ox) {
            int64_t expected = 5 + out;
            for (int64_t in = 0; in < channels / group; ++in) {
              const int64_t channel = out / (outs / group) * (channels / group) + in;
              window.taps(oy, ox, height, width, [&](int64_t tap, int64_t position) {
                expected += xs[static_cast<size_t>((n * channels + channel) * height * width + position)] *
                            ws[static_cast<size_t>((out * (channels / group) + in) * taps + tap)];
              });
            }
            ASSERT_EQ(ys[at++], expected) << y.type().text();
          }
  }
}

TEST(Conv, TakesOneAndThreeSpatialAxes) {
  const Attrs line = attrsOf("Conv").set("pads", Ints{1, 0}).set("strides", Ints{2});
  EXPECT_THAT(runOne(line, {f32({1, 1, 4}, {1, 2, 3, 4}), f32({1, 1, 2}, {10, 1})}).doubles(), ElementsAre(1, 23));
  const Tensor cube =
      runOne("Conv", {counted(Float32, {1, 1, 2, 2, 3}), f32({1, 1, 2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1})});
  EXPECT_THAT(cube.doubles(), ElementsAre(40, 48));
}

TEST(Conv, JoinsRowsOnlyWhereTheyContinue) {
  // One column wide with a step along it: neighbouring rows must not be taken for one run.
  const Attrs attrs = attrsOf("Conv").set("strides", Ints{1, 2});
  EXPECT_THAT(runOne(attrs, {counted(Float32, {1, 1, 3, 1}), f32({1, 1, 1, 1}, {2})}).doubles(), ElementsAre(0, 2, 4));
}

TEST(Conv, GivesTheBiasWhereNothingIsSeen) {
  const Attrs attrs = attrsOf("Conv").set("pads", Ints{2, 2});
  EXPECT_THAT(runOne(attrs, {f32({1, 1, 0}, {}), f32({1, 1, 1}, {3}), f32({1}, {7})}).doubles(), Each(7));
  EXPECT_THAT(runOne(attrsOf("Conv"), {f32({0, 1, 2}, {}), f32({1, 1, 1}, {3})}).doubles(), IsEmpty());
}

TEST(Conv, AccumulatesNarrowFloatsInWideOnes) {
  // 2048 + 1 is not an f16 value, but 2048 + 1 + 1 is.
  const Tensor y = runOne("Conv", {Tensor::of(Type(Float16, {1, 3, 1}), std::vector<double>{2048, 1, 1}),
                                   Tensor::of(Type(Float16, {1, 3, 1}), std::vector<double>{1, 1, 1})});
  EXPECT_THAT(y.doubles(), ElementsAre(2050));
}

TEST(MaxPool, AgreesWithPlainLoops) {
  const int64_t planes = 6, height = 5, width = 6;
  Ints values(static_cast<size_t>(planes * height * width));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * 7919 % 23) - 11;
  const Tensor x = Tensor::of(Type(Int8, {2, 3, height, width}), values);
  for (const Plain& window : kWindows) {
    const auto results = runOp(window.attrs("MaxPoolWithIndices").set("kernel", window.kernel), {x});
    ASSERT_TRUE(results.ok());
    const Tensor& y = results->front();
    EXPECT_EQ(runOne(window.attrs("MaxPool").set("kernel", window.kernel), {x}), y);
    const Ints best = y.toInts(), winners = results->back().toInts();
    size_t at = 0;
    for (int64_t plane = 0; plane < planes; ++plane)
      for (int64_t oy = 0; oy < y.type().dim(2); ++oy)
        for (int64_t ox = 0; ox < y.type().dim(3); ++ox, ++at) {
          int64_t winner = -1;
          window.taps(oy, ox, height, width, [&](int64_t, int64_t position) {
            const int64_t index = plane * height * width + position;
            if (winner < 0 || values[static_cast<size_t>(index)] > values[static_cast<size_t>(winner)]) winner = index;
          });
          ASSERT_EQ(winners[at], winner);
          ASSERT_EQ(best[at], winner < 0 ? -128 : values[static_cast<size_t>(winner)]);
        }
  }
}

TEST(MaxPool, LetsWindowsReachPastTheEnd) {
  const Attrs attrs = attrsOf("MaxPool").set("kernel", Ints{2}).set("strides", Ints{2}).set("sizes", Ints{3});
  EXPECT_THAT(runOne(attrs, {f32({1, 1, 5}, {-1, -2, -3, -4, -5})}).doubles(), ElementsAre(-1, -3, -5));
}

TEST(MaxPool, KeepsNanAndLowestValues) {
  const Attrs attrs = attrsOf("MaxPoolWithIndices").set("kernel", Ints{2}).set("strides", Ints{2});
  const auto results = runOp(attrs, {f32({1, 1, 6}, {1, kNan, kNan, 9, -HUGE_VAL, -HUGE_VAL})});
  ASSERT_TRUE(results.ok());
  const std::vector<double> y = results->front().doubles();
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], -HUGE_VAL);
  EXPECT_THAT(results->back().toInts(), ElementsAre(1, 2, 4));
}

TEST(AvgPool, AgreesWithPlainLoops) {
  const int64_t height = 5, width = 6;
  const Tensor x = counted(Float64, {2, 2, height, width});
  const std::vector<double> xs = x.doubles();
  for (const Plain& window : kWindows) {
    for (const bool padding : {false, true}) {
      const Attrs attrs =
          window.attrs("AvgPool").set("kernel", window.kernel).set("count_include_pad", int64_t{padding});
      const Tensor y = runOne(attrs, {x});
      const std::vector<double> ys = y.doubles();
      size_t at = 0;
      for (int64_t plane = 0; plane < 4; ++plane)
        for (int64_t oy = 0; oy < y.type().dim(2); ++oy)
          for (int64_t ox = 0; ox < y.type().dim(3); ++ox) {
            double sum = 0, count = 0;
            window.taps(oy, ox, height, width, [&](int64_t, int64_t position) {
              sum += xs[static_cast<size_t>(plane * height * width + position)];
              ++count;
            });
            if (padding) count = static_cast<double>(window.kernel[0] * window.kernel[1]);
            ASSERT_NEAR(ys[at++], sum / std::max(count, 1.0), 1e-12) << y.type().text();
          }
    }
  }
}

TEST(AvgPool, CountsPaddingOnlyUpToItsEnd) {
  // The last window is [5, padding, beyond].
  Attrs attrs =
      attrsOf("AvgPool").set("kernel", Ints{3}).set("strides", Ints{2}).set("pads", Ints{0, 1}).set("sizes", Ints{3});
  const Tensor x = f32({1, 1, 5}, {1, 2, 3, 4, 6});
  EXPECT_THAT(runOne(attrs, {x}).doubles(), ElementsAre(2, testing::DoubleNear(13 / 3., 1e-6), 6));
  attrs.set("count_include_pad", int64_t{1});
  EXPECT_THAT(runOne(attrs, {x}).doubles(), ElementsAre(2, testing::DoubleNear(13 / 3., 1e-6), 3));
}

TEST(Pools, StayQuickWithPaddingFarLargerThanTheInput) {
  const int64_t far = int64_t{1} << 30;
  const Attrs attrs = attrsOf("MaxPool").set("kernel", Ints{far}).set("pads", Ints{far - 1, 0}).set("sizes", Ints{2});
  EXPECT_THAT(runOne(attrs, {f32({1, 1, 2}, {4, 5})}).doubles(), ElementsAre(4, 5));
}

}  // namespace
}  // namespace aglow
