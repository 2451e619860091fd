// Attention and resampling against their definitions, written as plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "evaluate.h"
#include "support/rng.h"

namespace aglow {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(LowerAttention, SharesKeysBetweenHeadsAndLooksThroughAWindow) {
  Rng rng(3);
  const int64_t heads = 4, groups = 2, queries = 3, keys = 5, width = 2;
  for (int round = 0; round < 20; ++round) {
    Module module;
    Function& f = *module.addFunction("f");
    Builder b(f);
    NamedTensors bindings;
    const auto input = [&](const char* name, const Shape& shape) {
      bindings[name] = testing_support::randomTensor(rng, Type(ElemKind::Float32, shape));
      return b.input(name, bindings[name].type());
    };
    const Value q = input("q", {1, heads, queries, width}), k = input("k", {1, groups, keys, width}),
                v = input("v", {1, groups, keys, 1});
    const bool masked = round % 2 == 1;
    std::vector<double> addends(static_cast<size_t>(queries * keys));
    for (double& a : addends) a = rng.flip() ? -kInf : rng.real(-1, 1);
    if (round % 4 == 1) std::fill(addends.begin(), addends.begin() + keys, -kInf);  // query 0 sees nothing
    const Value mask =
        masked ? b.constant(Tensor::of(Type(ElemKind::Float32, Shape{queries, keys}), addends)) : Value{};
    const AttentionAttrs attrs{.scale = 0.5,
                               .softcap = round % 3 == 0 ? 2.0 : 0.0,
                               .left = rng.between(-1, 2),
                               .right = rng.between(-1, 2),
                               .offset = rng.between(-2, 3)};
    b.output("y", b.attention(q, k, v, mask, attrs)->result(0));
    const auto results = evaluateFunction(f, bindings);
    ASSERT_TRUE(results.ok()) << results.error().text();
    const std::vector<double> qs = bindings["q"].doubles(), ks = bindings["k"].doubles(), vs = bindings["v"].doubles(),
                              got = results->front().doubles();
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < queries; ++i) {
        double sum = 0, total = 0;
        for (int64_t j = 0; j < keys; ++j) {
          const int64_t at = i + attrs.offset, g = h / (heads / groups);
          if ((attrs.left >= 0 && j < at - attrs.left) || (attrs.right >= 0 && j > at + attrs.right)) continue;
          double score = 0;
          for (int64_t d = 0; d < width; ++d)
            score += attrs.scale * qs[static_cast<size_t>((h * queries + i) * width + d)] *
                     ks[static_cast<size_t>((g * keys + j) * width + d)];
          if (attrs.softcap > 0) score = attrs.softcap * std::tanh(score / attrs.softcap);
          if (masked) score += addends[static_cast<size_t>(i * keys + j)];
          sum += std::exp(score) * vs[static_cast<size_t>(g * keys + j)];
          total += std::exp(score);
        }
        EXPECT_NEAR(got[static_cast<size_t>(h * queries + i)], total == 0 ? 0 : sum / total, 1e-4)
            << "round " << round << ", head " << h << ", query " << i;
      }
    }
  }
}

std::vector<double> resized(const std::vector<double>& x, const ResizeAttrs& attrs, ElemKind kind = ElemKind::Float32) {
  Module module;
  Function& f = *module.addFunction("f");
  Builder b(f);
  const Tensor t = Tensor::of(Type(kind, Shape{static_cast<int64_t>(x.size())}), x);
  b.output("y", b.resize(b.input("x", t.type()), attrs));
  const auto results = evaluateFunction(f, {{"x", t}});
  EXPECT_TRUE(results.ok()) << results.error().text();
  return results.ok() ? results->front().doubles() : std::vector<double>{};
}

using Doubles = std::vector<double>;

TEST(LowerResize, TakesTheNearestElement) {
  ResizeAttrs attrs{.sizes = {4}, .scales = {2}, .coordinates = "asymmetric", .nearestMode = "floor"};
  EXPECT_EQ(resized({1, 2}, attrs), (Doubles{1, 1, 2, 2}));
  attrs.nearestMode = "ceil";
  EXPECT_EQ(resized({1, 2}, attrs), (Doubles{1, 2, 2, 2}));
}

TEST(LowerResize, WeighsNeighbours) {
  EXPECT_EQ(resized({0, 4}, {.sizes = {4}, .scales = {2}, .mode = "linear"}), (Doubles{0, 1, 3, 4}));
  EXPECT_EQ(resized({0, 4}, {.sizes = {3}, .scales = {1.5}, .mode = "linear", .coordinates = "align_corners"}),
            (Doubles{0, 2, 4}));
  // Halves to even, inside of the kind's range.
  EXPECT_EQ(resized({0, 5, 10}, {.sizes = {5}, .scales = {5.0 / 3}, .mode = "linear", .coordinates = "align_corners"},
                    ElemKind::UInt8),
            (Doubles{0, 2, 5, 8, 10}));
}

TEST(LowerResize, KeepsConstantsWhateverTheFilter) {
  for (const char* mode : {"linear", "cubic"})
    for (const bool antialias : {false, true})
      for (const bool exclude : {false, true})
        for (const double y :
             resized({3, 3, 3, 3, 3},
                     {.sizes = {2}, .scales = {0.4}, .mode = mode, .excludeOutside = exclude, .antialias = antialias}))
          EXPECT_NEAR(y, 3, 1e-5) << mode << antialias << exclude;
}

TEST(LowerResize, MeansMoreElementsWhereItShrinks) {
  const Doubles y =
      resized({0, 0, 8, 0, 0, 0, 0, 0}, {.sizes = {2}, .scales = {0.25}, .mode = "linear", .antialias = true});
  EXPECT_GT(y[0], 1) << "the single element is seen";
  EXPECT_EQ(resized({0, 8, 0, 0}, {.sizes = {1}, .scales = {0.25}, .mode = "linear"}), (Doubles{4}));
}

TEST(LowerResize, FillsWhatLiesOutsideOfTheCrop) {
  EXPECT_EQ(resized({1, 2, 3}, {.sizes = {3},
                                .scales = {1},
                                .mode = "linear",
                                .coordinates = "tf_crop_and_resize",
                                .roi = {0.5, 1.5},
                                .extrapolationValue = 9}),
            (Doubles{2, 3, 9}));
}

}  // namespace

}  // namespace aglow
