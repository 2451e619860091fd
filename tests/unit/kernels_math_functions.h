// The mathematical functions of the CPU kernel library as the including file compiles them, with or without fma.
// Nothing here leaves that file: what a file compiles for a newer machine must not replace what others compile.
#pragma once

#pragma clang diagnostic ignored "-Wpsabi"  // nothing is passed in vectors: all of it is inlined

#include "backends/cpu/kernels/math/exp_log_f32.h"
#include "backends/cpu/kernels/math/pow_f32.h"
#include "backends/cpu/kernels/math/tanh_erf_f32.h"
#include "backends/cpu/kernels/math/trig_f32.h"

namespace aglow::cpu {
namespace {

// Reads and writes 16 elements, W at a time.
using UnaryKernel = void(const float* x, float* out);
using BinaryKernel = void(const float* x, const float* y, float* out);
inline constexpr int kKernelLanes = 16;

template <int W>
AGLOW_INLINE F32<W> loadLanes(const float* from) {
  F32<W> value;
  __builtin_memcpy(&value, from, sizeof(value));
  return value;
}

#define AGLOW_TEST_UNARY(NAME)                               \
  template <int W>                                           \
  void NAME##Kernel(const float* x, float* out) {            \
    for (int i = 0; i < kKernelLanes; i += W) {              \
      const F32<W> result = NAME(loadLanes<W>(x + i));       \
      __builtin_memcpy(out + i, &result, W * sizeof(float)); \
    }                                                        \
  }
#define AGLOW_TEST_BINARY(NAME)                                             \
  template <int W>                                                          \
  void NAME##Kernel(const float* x, const float* y, float* out) {           \
    for (int i = 0; i < kKernelLanes; i += W) {                             \
      const F32<W> result = NAME(loadLanes<W>(x + i), loadLanes<W>(y + i)); \
      __builtin_memcpy(out + i, &result, W * sizeof(float));                \
    }                                                                       \
  }
AGLOW_TEST_UNARY(exp)
AGLOW_TEST_UNARY(expFlushed)
AGLOW_TEST_UNARY(expm1)
AGLOW_TEST_UNARY(log)
AGLOW_TEST_UNARY(log1p)
AGLOW_TEST_UNARY(sin)
AGLOW_TEST_UNARY(cos)
AGLOW_TEST_UNARY(atan)
AGLOW_TEST_UNARY(tanh)
AGLOW_TEST_UNARY(erf)
AGLOW_TEST_BINARY(pow)
AGLOW_TEST_BINARY(rem)
#undef AGLOW_TEST_UNARY
#undef AGLOW_TEST_BINARY

}  // namespace
}  // namespace aglow::cpu
