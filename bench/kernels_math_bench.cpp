// Mathematical functions on vectors against the C library, one element after the other. perElement is the time of one.
#if defined(__clang__)
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/kernels/math/exp_log_f32.h"
#include "backends/cpu/kernels/math/pow_f32.h"
#include "backends/cpu/kernels/math/tanh_erf_f32.h"
#include "backends/cpu/kernels/math/trig_f32.h"

namespace aglow::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX__)
constexpr int kWidth = 8;
#else
constexpr int kWidth = 4;
#endif
using Vector = F32<kWidth>;
constexpr size_t kElements = 4096;  // they stay in the first level cache

template <class Step>
void overElements(benchmark::State& state, size_t width, Step step) {
  std::vector<float> x(kElements), out(kElements);
  for (size_t i = 0; i < kElements; ++i) x[i] = static_cast<float>(i * 7 % kElements) * (8.0f / kElements) - 4.0f;
  for (auto _ : state) {
    for (size_t i = 0; i < kElements; i += width) step(x.data() + i, out.data() + i);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.counters["perElement"] =
      benchmark::Counter(kElements, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class F>
void onVectors(benchmark::State& state, F function) {
  overElements(state, kWidth, [function](const float* x, float* out) __attribute__((always_inline)) {
    Vector value;
    std::memcpy(&value, x, sizeof(value));
    value = function(value);
    std::memcpy(out, &value, sizeof(value));
  });
}

template <class F>
void oneByOne(benchmark::State& state, F function) {
  overElements(state, 1, [function](const float* x, float* out) { *out = function(*x); });
}

#define AGLOW_INLINED __attribute__((always_inline))
#define AGLOW_MATH_BENCH(NAME, VECTORS, SCALARS)                                      \
  BENCHMARK_CAPTURE(onVectors, NAME, [](Vector x) AGLOW_INLINED { return VECTORS; }); \
  BENCHMARK_CAPTURE(oneByOne, NAME, [](float x) { return SCALARS; })

AGLOW_MATH_BENCH(exp, cpu::exp(x), std::exp(x));
AGLOW_MATH_BENCH(expFlushed, cpu::expFlushed(x), std::exp(x));
AGLOW_MATH_BENCH(sigmoid, 1.0f / (1.0f + cpu::exp(-x)), 1.0f / (1.0f + std::exp(-x)));
AGLOW_MATH_BENCH(tanh, cpu::tanh(x), std::tanh(x));
AGLOW_MATH_BENCH(erf, cpu::erf(x), std::erf(x));
AGLOW_MATH_BENCH(expm1, cpu::expm1(x), std::expm1(x));
AGLOW_MATH_BENCH(log, cpu::log(x* x), std::log(x* x));
AGLOW_MATH_BENCH(log1p, cpu::log1p(x* x), std::log1p(x* x));
AGLOW_MATH_BENCH(sin, cpu::sin(x), std::sin(x));
AGLOW_MATH_BENCH(atan, cpu::atan(x), std::atan(x));
AGLOW_MATH_BENCH(pow, cpu::pow(x* x, x), std::pow(x* x, x));
AGLOW_MATH_BENCH(rem, cpu::rem(x, x* x), std::fmod(x, x* x));

}  // namespace
}  // namespace aglow::cpu
#endif
