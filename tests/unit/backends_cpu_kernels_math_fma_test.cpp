// The mathematical functions compiled for a machine with fma.
#if defined(__clang__) && defined(__x86_64__)
#include <stdint.h>

#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#include "kernels_math_functions.h"
#pragma clang attribute pop

#include "kernels_math_accuracy.h"

namespace aglow::cpu {
namespace {

AGLOW_MATH_TESTS(KernelsMathFma, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))

}  // namespace
}  // namespace aglow::cpu
#endif
