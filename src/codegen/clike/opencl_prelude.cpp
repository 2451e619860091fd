#include <fmt/format.h>

#include "codegen/clike/c_text.h"
#include "codegen/clike/launch.h"

namespace aglow::codegen {

std::string openClPrelude() {
  constexpr std::string_view kNames = R"(#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define WIDE double
#define WIDE_MIN 0x1p-1000
#define WIDE_MAX 0x1p1000
#else
#define NO_F64
#define WIDE float
#define WIDE_MIN 0x1p-149f
#define WIDE_MAX FLT_MAX
#endif
#pragma OPENCL FP_CONTRACT OFF
typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
#define INT32_MIN INT_MIN
#define INT32_MAX INT_MAX
#define UINT32_MAX UINT_MAX
#define INT64_MIN LONG_MIN
#define INT64_MAX LONG_MAX
#define UINT64_MAX ULONG_MAX
#define fmodf fmod
#define powf pow
#define fabsf fabs
#define floorf floor
#define rintf rint
#define sqrtf sqrt
#define expf exp
#define expm1f expm1
#define logf log
#define log1pf log1p
#define sinf sin
#define cosf cos
#define atanf atan
#define tanhf tanh
#define erff erf

#define KERNEL(x, y) __kernel __attribute__((reqd_work_group_size(x, y, 1))) void
#define OPERAND(n) __global uint8_t *b##n, uint64_t o##n
#define AT(n, T) ((__global T*)(b##n + o##n))
#define GLOBAL __global
#define LOCAL __local
#define TABLE __constant
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define ITEM(axis) get_global_id(axis)
#define LOCAL_ITEM(axis) get_local_id(axis)
#define GROUP(axis) get_group_id(axis)
#ifdef PTX
#define EXCHANGE(words)
#define MULTIPLY_HALVES(c, a, b) multiply_halves(c, a, b)
#else
#define EXCHANGE(words) LOCAL uint32_t exchange[words];
#define MULTIPLY_HALVES(c, a, b) multiply_halves(c, a, b, exchange, item)
#endif
#ifdef PTX
#define NATIVE_HALVES
static inline float f32_of_f16(uint16_t x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
static inline uint16_t f16_of_f32(float x) {
  uint16_t y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
#endif
#define ATOMIC_MAX(p, x) atomic_max(p, x)
#define ATOMIC_ADD(p, x) atomic_add(p, x)
#define ATOMIC_SET_ONCE(p) (atomic_cmpxchg(p, 0, 1) == 0)
#define float1 float
#define double1 double
#define uint1 uint
#define ulong1 ulong
#define vload1(n, p) ((p)[n])
#define vstore1(v, n, p) ((p)[n] = (v))
#define BITS_OF_F32(x) as_int(x)
#if defined(FP_FAST_FMAF) || defined(PTX)
#define MULADD_f32(a, b, c) fma(a, b, c)
#else
#define MULADD_f32(a, b, c) ((a) * (b) + (c))
#endif
#ifdef FP_FAST_FMA
#define MULADD_f64(a, b, c) fma(a, b, c)
#else
#define MULADD_f64(a, b, c) ((a) * (b) + (c))
#endif
#define MULADD_i32(a, b, c) add_i32(mul_i32(a, b), c)
#define MULADD_u32(a, b, c) add_u32(mul_u32(a, b), c)
#define MULADD_i64(a, b, c) add_i64(mul_i64(a, b), c)
#define MULADD_u64(a, b, c) add_u64(mul_u64(a, b), c)

)";
  // What 32 items that run in step multiply together: 16 x 16 by 16 x 8 halves. Item 4 r + c has of the left matrix the
  // rows r and r + 8, of the right one column r, of both elements 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 along k, and of the
  // results in both rows the columns 2 c and 2 c + 1. Without an instruction for it, items tell each other.
  constexpr std::string_view kHalves = R"(
#ifdef PTX
static inline void multiply_halves(float* c, const uint32_t* a, const uint32_t* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%10, %11, %12, %13};"
               : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                 "f"(c[3]));
}
#else
static inline void multiply_halves(float* c, const uint32_t* a, const uint32_t* b, LOCAL uint32_t* exchange,
                                   int32_t item) {
  LOCAL uint32_t* ofStep = exchange + item / 32 * 192;
  const int32_t lane = item % 32;
  for (int32_t i = 0; i < 4; ++i) ofStep[lane * 6 + i] = a[i];
  for (int32_t i = 0; i < 2; ++i) ofStep[lane * 6 + 4 + i] = b[i];
  BARRIER();
  for (int32_t i = 0; i < 4; ++i) {
    const int32_t column = lane % 4 * 2 + i % 2;
    for (int32_t k = 0; k < 16; ++k) {
      const uint32_t left = ofStep[(lane / 4 * 4 + k % 8 / 2) * 6 + i / 2 + k / 8 * 2];
      const uint32_t right = ofStep[(column * 4 + k % 8 / 2) * 6 + 4 + k / 8];
      c[i] = MULADD_f32(f32_of_f16((uint16_t)(left >> k % 2 * 16)), f32_of_f16((uint16_t)(right >> k % 2 * 16)), c[i]);
    }
  }
  BARRIER();
}
#endif
)";
  return fmt::format("{}{}{}", kNames, sharedPrelude(), kHalves);
}

std::string ptxTrial() {
  return R"(
__kernel void trial(__global uint32_t* words) {
  float c[4] = {0, 0, 0, 0};
  const uint32_t a[4] = {words[0], words[1], words[2], words[3]}, b[2] = {words[4], words[5]};
  multiply_halves(c, a, b);
  words[6] = f16_of_f32(c[0] + c[1] + c[2] + c[3] + f32_of_f16((uint16_t)words[7]));
}
)";
}

}  // namespace aglow::codegen
