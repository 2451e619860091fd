#include <fmt/format.h>

#include "codegen/clike/c_text.h"
#include "codegen/clike/launch.h"

namespace aglow::codegen {

std::string openClPrelude() {
  constexpr std::string_view kNames = R"(#ifdef PAIRS
#define WIDE float
#define WIDE_MIN 0x1p-149f
#define WIDE_MAX FLT_MAX
#else
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define WIDE double
#define WIDE_MIN 0x1p-1000
#define WIDE_MAX 0x1p1000
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
#define ITEMS
#define OPERAND(n) __global uint8_t *b##n, uint64_t o##n
#define AT(n, T) ((__global T*)(b##n + o##n))
#define FUNCTION static inline
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_ARRAY __local
#define TABLE __constant
#define TABLE_ARRAY __constant
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define BARRIER_OF_ALL() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define ITEM(axis) get_global_id(axis)
#define LOCAL_ITEM(axis) get_local_id(axis)
#define GROUP(axis) get_group_id(axis)
#ifdef PTX
#define COPY_AHEAD(bytes, to, from, there)                                                         \
  asm volatile("cp.async.ca.shared.global [%0], [%1], " #bytes ", %2;"                             \
               :                                                                                   \
               : "r"((uint32_t)(uint64_t)(to)), "l"((uint64_t)(from)), "r"((there) ? bytes : 0)  \
               : "memory")
#define COPY_AHEAD_4(to, from, there) COPY_AHEAD(4, to, from, there)
#define COPY_AHEAD_8(to, from, there) COPY_AHEAD(8, to, from, there)
#define COPY_AHEAD_16(to, from, there) COPY_AHEAD(16, to, from, there)
#define COPIES_END() asm volatile("cp.async.commit_group;" : : : "memory")
#define COPIES_WAIT(n) asm volatile("cp.async.wait_group " #n ";" : : : "memory")
#define EXCHANGE(words)
#define MULTIPLY_HALVES(c, a, b) multiply_halves(c, a, b)
#else
#define COPY_AHEAD(T, to, from, there) (*(LOCAL T*)(to) = (there) ? *(GLOBAL const T*)(from) : (T)(0))
#define COPY_AHEAD_4(to, from, there) COPY_AHEAD(uint, to, from, there)
#define COPY_AHEAD_8(to, from, there) COPY_AHEAD(uint2, to, from, there)
#define COPY_AHEAD_16(to, from, there) COPY_AHEAD(uint4, to, from, there)
#define COPIES_END()
#define COPIES_WAIT(n)
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
#define VECTOR2(T, a, b) ((T)(a, b))
#define VECTOR4(T, a, b, c, d) ((T)(a, b, c, d))
#define BITS_OF_F32(x) as_int(x)
#if defined(FP_FAST_FMAF) || defined(PTX)
#define MULADD_f32(a, b, c) fma(a, b, c)
#else
#define MULADD_f32(a, b, c) ((a) * (b) + (c))
#endif
#ifdef PAIRS
#define MULADD_f64(a, b, c) add_f64(mul_f64(a, b), c)
#elif defined(FP_FAST_FMA)
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
  // results in both rows the columns 2 c and 2 c + 1. Without an instruction for it, items tell each other. The left
  // matrix comes from rows in local memory, two of the right one side by side from lines along k.
  constexpr std::string_view kHalves = R"(
#ifdef PTX
#define HALVES_OF(kind, words, tile, length, lane)                                                           \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4" kind ".shared.b16 {%0, %1, %2, %3}, [%4];"                    \
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])                              \
               : "r"((uint32_t)(uint64_t)(tile + lane % 16 * length + lane / 16 * 8))                          \
               : "memory")
static inline void rows_of_halves(uint32_t* a, LOCAL const uint16_t* tile, int32_t length, int32_t lane) {
  HALVES_OF("", a, tile, length, lane);
}
static inline void columns_of_halves(uint32_t* b, LOCAL const uint16_t* tile, int32_t length, int32_t lane) {
  HALVES_OF(".trans", b, tile, length, lane);
}
static inline void multiply_halves(float* c, const uint32_t* a, const uint32_t* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%10, %11, %12, %13};"
               : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                 "f"(c[3]));
}
#else
static inline void rows_of_halves(uint32_t* a, LOCAL const uint16_t* tile, int32_t length, int32_t lane) {
  for (int32_t i = 0; i < 4; ++i) {
    LOCAL const uint16_t* two = tile + (lane / 4 + i % 2 * 8) * length + lane % 4 * 2 + i / 2 * 8;
    a[i] = two[0] | (uint32_t)two[1] << 16;
  }
}
static inline void columns_of_halves(uint32_t* b, LOCAL const uint16_t* tile, int32_t length, int32_t lane) {
  for (int32_t i = 0; i < 4; ++i) {
    LOCAL const uint16_t* two = tile + (lane % 4 * 2 + i % 2 * 8) * length + lane / 4 + i / 2 * 8;
    b[i] = two[0] | (uint32_t)two[length] << 16;
  }
}
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
  return fmt::format("{}{}{}{}", kNames, pairsPrelude(), sharedPrelude(), kHalves);
}

std::string ptxTrial() {
  return R"(
__kernel void trial(__global uint32_t* words) {
  __local uint32_t tile[512];
  COPY_AHEAD_16(tile + 4 * get_local_id(0), words, true);
  COPIES_END();
  COPIES_WAIT(0);
  float c[4] = {0, 0, 0, 0};
  uint32_t a[4], b[4];
  rows_of_halves(a, (__local const uint16_t*)tile, 32, 0);
  columns_of_halves(b, (__local const uint16_t*)tile, 32, 0);
  multiply_halves(c, a, b);
  words[6] = f16_of_f32(c[0] + c[1] + c[2] + c[3] + f32_of_f16((uint16_t)words[7]));
}
)";
}

}  // namespace aglow::codegen
