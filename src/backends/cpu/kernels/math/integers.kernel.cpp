// Integer arithmetic that is more than an instruction, for generated code: aglow_NAME_i64_w1 and _u64_w1.
#include "backends/cpu/kernels/math/integers.h"

using namespace aglow::cpu;

extern "C" int64_t aglow_div_i64_w1(int64_t a, int64_t b) { return divided(a, b); }
extern "C" uint64_t aglow_div_u64_w1(uint64_t a, uint64_t b) { return divided(a, b); }
extern "C" int64_t aglow_rem_i64_w1(int64_t a, int64_t b) { return remainder(a, b); }
extern "C" uint64_t aglow_rem_u64_w1(uint64_t a, uint64_t b) { return remainder(a, b); }
extern "C" int64_t aglow_pow_i64_w1(int64_t base, int64_t exponent) { return raised(base, exponent); }
extern "C" uint64_t aglow_pow_u64_w1(uint64_t base, uint64_t exponent) { return raised(base, exponent); }
