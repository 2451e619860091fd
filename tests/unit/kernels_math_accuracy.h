// How far functions of f32 are from the C library's in double, over all f16 and every 4099th f32.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tensor/convert.h"

namespace aglow {

inline constexpr double kMaxUlp = 4;
inline constexpr size_t kStep = 16;  // elements in a call

// In units of the last place of the exact value. Zeros must have the right sign; the largest f32 and infinity are one
// unit apart.
inline double ulpsBetween(float got, double exact) {
  constexpr double kWrong = 1e9;
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kWrong;
  if (std::isnan(got) || std::signbit(got) != std::signbit(exact)) return kWrong;
  const auto rounded = static_cast<float>(exact);
  if (got == rounded && std::isinf(got)) return 0;
  if (std::isinf(rounded)) return std::fabs(got) == std::numeric_limits<float>::max() ? 1 : kWrong;
  if (std::isinf(got)) return std::fabs(rounded) == std::numeric_limits<float>::max() ? 1 : kWrong;
  const int exponent = exact == 0 ? -126 : std::max(std::ilogb(exact), -126);
  return std::fabs(got - exact) / std::ldexp(1.0, exponent - 23);
}

inline std::vector<float> edgeValues() {
  std::vector<float> edges;
  for (const float value : {0.0f,
                            1.0f,
                            2.0f,
                            3.0f,
                            0.5f,
                            1.5f,
                            9.0f,
                            88.0f,
                            88.7228f,
                            88.7229f,
                            87.3f,
                            103.97f,
                            104.1f,
                            1e-45f,
                            1.2e-38f,
                            0x1p22f,
                            0x1p23f,
                            16777215.0f,
                            16777216.0f,
                            33554432.0f,
                            0x1.fffffep-1f,
                            0x1.000002p0f,
                            0x1.921fb6p0f,
                            1e10f,
                            3e38f,
                            std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            0x1.6a09e6p-1f,
                            0x1.62e43p-2f,
                            7.0f,
                            0.1f}) {
    edges.push_back(value);
    edges.push_back(-value);
  }
  return edges;
}

inline std::vector<float> denseSample() {
  std::vector<float> sample = edgeValues();
  for (uint32_t bits = 0; bits < 1u << 16; ++bits)
    sample.push_back(static_cast<float>(floatFromBits(ElemKind::Float16, bits)));
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099)
    sample.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return sample;
}

inline void expectAccurate(const std::string& name, void (*kernel)(const float*, float*), double (*exact)(double),
                           std::vector<float> sample = denseSample()) {
  while (sample.size() % kStep != 0) sample.push_back(1);
  double worst = 0;
  float where = 0, what = 0;
  for (size_t first = 0; first < sample.size(); first += kStep) {
    float out[kStep];
    kernel(sample.data() + first, out);
    for (size_t i = 0; i < kStep; ++i) {
      const float x = sample[first + i];
      const double ulps = ulpsBetween(out[i], exact(x));
      if (ulps <= worst) continue;
      worst = ulps;
      where = x;
      what = out[i];
    }
  }
  testing::Test::RecordProperty("ulp_of_" + name, std::to_string(worst));
  EXPECT_LE(worst, kMaxUlp) << name << "(" << where << ") is " << what << ", exactly " << exact(where);
}

// Pairs for functions of two arguments: all edges with each other, and random ones, of which each third has a power in
// range and each third a small integer as exponent.
inline void pairSample(std::vector<float>& xs, std::vector<float>& ys) {
  for (const float x : edgeValues())
    for (const float y : edgeValues()) {
      xs.push_back(x);
      ys.push_back(y);
    }
  std::mt19937 random(1);
  for (int i = 0; xs.size() < 300000; ++i) {
    const auto a = static_cast<uint32_t>(random()), b = static_cast<uint32_t>(random());
    auto x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
    if (i % 3 == 1) y = static_cast<float>((b * 0x1p-32 * 300 - 160) / std::log2(std::fabs(x)));
    if (i % 3 == 2) {
      x = static_cast<float>(static_cast<int32_t>(a)) * 0x1p-28f;
      y = static_cast<float>(b % 41) - 20;
    }
    xs.push_back(x);
    ys.push_back(y);
  }
}

inline void expectAccurate(const std::string& name, void (*kernel)(const float*, const float*, float*),
                           double (*exact)(double, double), double bound) {
  std::vector<float> xs, ys;
  pairSample(xs, ys);
  double worst = 0;
  float whereX = 0, whereY = 0, what = 0;
  for (size_t first = 0; first + kStep <= xs.size(); first += kStep) {
    float out[kStep];
    kernel(xs.data() + first, ys.data() + first, out);
    for (size_t i = 0; i < kStep; ++i) {
      const double ulps = ulpsBetween(out[i], exact(xs[first + i], ys[first + i]));
      if (ulps <= worst) continue;
      worst = ulps;
      whereX = xs[first + i];
      whereY = ys[first + i];
      what = out[i];
    }
  }
  testing::Test::RecordProperty("ulp_of_" + name, std::to_string(worst));
  EXPECT_LE(worst, bound) << name << "(" << whereX << ", " << whereY << ") is " << what << ", exactly "
                          << exact(whereX, whereY);
}

// What expFlushed promises; the values around its step to zero are left out.
inline double flushedExp(double x) { return x < -87.685 ? 0 : std::exp(x); }
inline std::vector<float> flushedSample() {
  std::vector<float> sample = denseSample();
  std::erase_if(sample, [](float x) { return x > 88 || (x > -87.685f && x < -87.68f); });
  return sample;
}

}  // namespace aglow

// The tests of one way to compile the functions, in the file that compiles them.
#define AGLOW_MATH_TESTS(SUITE, READY)                                               \
  class SUITE : public testing::Test {                                               \
  protected:                                                                         \
    void SetUp() override {                                                          \
      if (!(READY)) GTEST_SKIP() << "this machine has no fma";                       \
    }                                                                                \
  };                                                                                 \
  TEST_F(SUITE, Exp) {                                                               \
    expectAccurate("exp", expKernel<16>, std::exp);                                  \
    expectAccurate("expFlushed", expFlushedKernel<16>, flushedExp, flushedSample()); \
    expectAccurate("expm1", expm1Kernel<16>, std::expm1);                            \
  }                                                                                  \
  TEST_F(SUITE, Log) {                                                               \
    expectAccurate("log", logKernel<16>, std::log);                                  \
    expectAccurate("log1p", log1pKernel<16>, std::log1p);                            \
  }                                                                                  \
  TEST_F(SUITE, TanhAndErf) {                                                        \
    expectAccurate("tanh", tanhKernel<16>, std::tanh);                               \
    expectAccurate("erf", erfKernel<16>, std::erf);                                  \
  }                                                                                  \
  TEST_F(SUITE, SinCosAtan) {                                                        \
    expectAccurate("sin", sinKernel<16>, std::sin);                                  \
    expectAccurate("cos", cosKernel<16>, std::cos);                                  \
    expectAccurate("atan", atanKernel<16>, std::atan);                               \
  }                                                                                  \
  TEST_F(SUITE, PowAndRem) {                                                         \
    expectAccurate("pow", powKernel<16>, std::pow, kMaxUlp);                         \
    expectAccurate("rem", remKernel<16>, std::fmod, 0);                              \
  }
