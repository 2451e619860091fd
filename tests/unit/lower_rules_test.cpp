// Lowerings against their operators' definitions, written as plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "compile/evaluate.h"
#include "graph/builder.h"
#include "support/rng.h"

namespace aglow {

namespace {

Tensor randomFloats(Rng& rng, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = rng.real(-1, 1);
  return Tensor::of(Type(ElemKind::Float32, shape), values);
}

// The value of what `build` makes of inputs x0, x1 ...
template <class F>
Tensor evaluated(const std::vector<Tensor>& inputs, F&& build) {
  Module module;
  Function& function = *module.addFunction("f");
  Builder b(function);
  NamedTensors bindings;
  std::vector<Value> values;
  for (const Tensor& t : inputs) {
    values.push_back(b.input("x" + std::to_string(values.size()), t.type()));
    bindings[values.back().node->name()] = t;
  }
  b.output("y", build(b, values));
  auto results = evaluateFunction(function, bindings);
  EXPECT_TRUE(results.ok()) << results.error().text();
  return results.ok() ? results->front() : Tensor();
}

// One spatial axis: every input element adds the filter, scaled, to the result, from which the pads are then cut.
std::vector<double> transposedByDefinition(const std::vector<double>& x, const std::vector<double>& filter,
                                           int64_t group, int64_t in, int64_t out, int64_t extent, int64_t kernel,
                                           int64_t stride, int64_t dilation, int64_t before, int64_t size) {
  std::vector<double> y(static_cast<size_t>(out * group * size), 0);
  for (int64_t g = 0; g < group; ++g)
    for (int64_t i = 0; i < in; ++i)
      for (int64_t o = 0; o < out; ++o)
        for (int64_t p = 0; p < extent; ++p)
          for (int64_t k = 0; k < kernel; ++k) {
            const int64_t at = p * stride + k * dilation - before, channel = g * in + i;
            if (at < 0 || at >= size) continue;
            y[static_cast<size_t>((g * out + o) * size + at)] +=
                x[static_cast<size_t>(channel * extent + p)] *
                filter[static_cast<size_t>((channel * out + o) * kernel + k)];
          }
  return y;
}

TEST(LowerConvTranspose, AddsTheFilterAtEveryElement) {
  Rng rng(1);
  int checked = 0;
  for (int round = 0; round < 300; ++round) {
    const int64_t group = rng.between(1, 2), in = rng.between(1, 2), out = rng.between(1, 2),
                  extent = rng.between(1, 4);
    const int64_t kernel = rng.between(1, 9), stride = rng.between(1, 6), dilation = rng.between(1, 6);
    // Pads may exceed the kernel, and then cut into what the input itself gives.
    const int64_t before = rng.between(0, 5), after = rng.between(0, 5), extra = rng.between(0, 2);
    const int64_t size = (extent - 1) * stride + (kernel - 1) * dilation + 1 + extra - before - after;
    if (size < 0) continue;
    const Tensor x = randomFloats(rng, Shape{1, group * in, extent}),
                 filter = randomFloats(rng, Shape{group * in, out, kernel});
    const Tensor y = evaluated({x, filter}, [&](Builder& b, const std::vector<Value>& v) {
      return b.convTranspose(v[0], v[1], {},
                             {.strides = {stride},
                              .pads = {before, after},
                              .dilations = {dilation},
                              .group = group,
                              .outputPadding = {extra}});
    });
    const std::vector<double> expected = transposedByDefinition(x.doubles(), filter.doubles(), group, in, out, extent,
                                                                kernel, stride, dilation, before, size);
    const std::vector<double> got = y.doubles();
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 1e-5) << "round " << round << ", element " << i;
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

TEST(LowerLrn, CountsAllNeighboursOnceHoweverWide) {
  Rng rng(2);
  for (const int64_t size : {1, 2, 3, 4, 9, 1000}) {
    const Tensor x = randomFloats(rng, Shape{2, 5, 3});
    const Tensor y = evaluated({x}, [&](Builder& b, const std::vector<Value>& v) {
      return b.lrn(v[0], {.size = size, .alpha = 0.5, .beta = 0.75, .bias = 2});
    });
    const std::vector<double> in = x.doubles(), out = y.doubles();
    for (int64_t i = 0; i < 30; ++i) {
      const int64_t channel = i / 3 % 5, first = i - channel * 3;
      double sum = 0;
      for (int64_t c = std::max<int64_t>(channel - (size - 1) / 2, 0); c <= std::min<int64_t>(channel + size / 2, 4);
           ++c)
        sum += in[static_cast<size_t>(first + c * 3)] * in[static_cast<size_t>(first + c * 3)];
      const double expected = in[static_cast<size_t>(i)] / std::pow(2 + 0.5 / static_cast<double>(size) * sum, 0.75);
      EXPECT_NEAR(out[static_cast<size_t>(i)], expected, 1e-5) << "size " << size << ", element " << i;
    }
  }
}

TEST(LowerSoftmax, StaysFiniteAndPreciseInNarrowKinds) {
  // 2000 equal elements: each is 1/2000, but their sum exceeds what f16 can count one by one.
  const Type type(ElemKind::Float16, Shape{2000});
  const Tensor y = evaluated({Tensor::of(type, std::vector<double>(2000, 60000))},
                             [&](Builder& b, const std::vector<Value>& v) { return b.softmax(v[0]); });
  EXPECT_NEAR(y.doubles().front(), 1.0 / 2000, 1e-6);
}

TEST(LowerLayerNorm, ComputesStatisticsInF32) {
  const Tensor x = Tensor::of(Type(ElemKind::Float16, Shape{1, 4}), std::vector<double>{1000, 1001, 1002, 1003});
  const Tensor ones = Tensor::of(Type(ElemKind::Float16, Shape{4}), std::vector<double>{1, 1, 1, 1});
  const Tensor mean = evaluated(
      {x, ones}, [&](Builder& b, const std::vector<Value>& v) { return b.layerNorm(v[0], v[1], {})->result(1); });
  EXPECT_EQ(mean.type().kind(), ElemKind::Float32);
  EXPECT_EQ(mean.doubles(), std::vector<double>{1001.5});
}

TEST(LowerQuantizeLinear, SharesAScaleWithinABlockEvenAtTheRaggedEnd) {
  const Tensor x = Tensor::of(Type(ElemKind::Int8, Shape{5}), std::vector<int>{10, 10, 10, 10, 10});
  const Tensor scale = Tensor::of(Type(ElemKind::Float32, Shape{3}), std::vector<double>{1, 2, 3});
  const Tensor y = evaluated({x, scale}, [&](Builder& b, const std::vector<Value>& v) {
    return b.dequantizeLinear(v[0], v[1], {}, {.axis = 0, .blockSize = 2});
  });
  EXPECT_EQ(y.doubles(), (std::vector<double>{10, 10, 20, 20, 30}));
}

TEST(LowerQuantizeLinear, SaturatesNarrowKinds) {
  const Tensor x = Tensor::of(Type(ElemKind::Float32, Shape{6}), std::vector<double>{-100, -2.5, -0.5, 0.5, 1.5, 100});
  const auto quantized = [&](ElemKind to) {
    return evaluated({x},
                     [&](Builder& b, const std::vector<Value>& v) {
                       return b.quantizeLinear(v[0], b.scalar(ElemKind::Float32, 1), {}, {.axis = 0, .to = to});
                     })
        .doubles();
  };
  EXPECT_EQ(quantized(ElemKind::Int4), (std::vector<double>{-8, -2, 0, 0, 2, 7}));
  EXPECT_EQ(quantized(ElemKind::UInt2), (std::vector<double>{0, 0, 0, 0, 2, 3}));
  EXPECT_EQ(quantized(ElemKind::Float4E2M1), (std::vector<double>{-6, -2, -0.5, 0.5, 1.5, 6}));
}

}  // namespace

}  // namespace aglow
