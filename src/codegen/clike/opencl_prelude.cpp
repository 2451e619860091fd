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
#ifdef FP_FAST_FMAF
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
  return fmt::format("{}{}", kNames, sharedPrelude());
}

}  // namespace aglow::codegen
