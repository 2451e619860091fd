#include <fmt/format.h>

#include "codegen/clike/c_text.h"
#include "codegen/clike/launch.h"

namespace aglow::codegen {

// Names and vectors as OpenCL C has them; casts of a number to a vector are its constructor.
std::string cudaPrelude() {
  constexpr std::string_view kNames = R"(#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
#define INT64_C(x) x##L
#define UINT64_C(x) x##UL
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-INT64_C(9223372036854775807) - 1)
#define INT64_MAX INT64_C(9223372036854775807)
#define UINT64_MAX UINT64_C(18446744073709551615)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#else
#include <math.h>
#include <stdint.h>
#endif
#define NATIVE_HALVES
#define WIDE double
#define WIDE_MIN 0x1p-1000
#define WIDE_MAX 0x1p1000
#define FUNCTION static __device__ inline
#define ITEMS
#define KERNEL(x, y) extern "C" __global__ void __launch_bounds__((x) * (y))
#define OPERAND(n) uint8_t *b##n, uint64_t o##n
#define AT(n, T) ((T*)(b##n + o##n))
#define GLOBAL
#define LOCAL
#define LOCAL_ARRAY __shared__
#define TABLE
#define TABLE_ARRAY static __constant__
#define BARRIER() __syncthreads()
#define BARRIER_OF_ALL() __syncthreads()
#define LOCAL_ITEM(axis) LOCAL_ITEM_##axis
#define LOCAL_ITEM_0 threadIdx.x
#define LOCAL_ITEM_1 threadIdx.y
#define GROUP(axis) GROUP_##axis
#define GROUP_0 blockIdx.x
#define GROUP_1 blockIdx.y
#define ITEM(axis) ITEM_##axis
#define ITEM_0 ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define ITEM_1 ((uint64_t)blockIdx.y * blockDim.y + threadIdx.y)
#define ATOMIC_MAX(p, x) atomicMax(p, x)
#define ATOMIC_ADD(p, x) atomicAdd(p, x)
#define ATOMIC_SET_ONCE(p) (atomicCAS(p, 0, 1) == 0)
#define BITS_OF_F32(x) __float_as_int(x)
#define COPIES_END()
#define COPIES_WAIT(n)

template <class T>
struct alignas(2 * sizeof(T)) lanes2 {
  T s0, s1;
  lanes2() = default;
  __device__ lanes2(T all) : s0(all), s1(all) {}
  __device__ lanes2(T a, T b) : s0(a), s1(b) {}
};
template <class T>
struct alignas(4 * sizeof(T)) lanes4 {
  T s0, s1, s2, s3;
  lanes4() = default;
  __device__ lanes4(T all) : s0(all), s1(all), s2(all), s3(all) {}
  __device__ lanes4(T a, T b, T c, T d) : s0(a), s1(b), s2(c), s3(d) {}
};
template <class T>
FUNCTION lanes4<T> operator+(lanes4<T> a, lanes4<T> b) {
  return {(T)(a.s0 + b.s0), (T)(a.s1 + b.s1), (T)(a.s2 + b.s2), (T)(a.s3 + b.s3)};
}
template <class T>
FUNCTION lanes4<T> operator*(lanes4<T> a, lanes4<T> b) {
  return {(T)(a.s0 * b.s0), (T)(a.s1 * b.s1), (T)(a.s2 * b.s2), (T)(a.s3 * b.s3)};
}
template <class T>
FUNCTION lanes4<T>& operator+=(lanes4<T>& a, lanes4<T> b) {
  return a = a + b;
}
template <class T>
FUNCTION lanes4<T> fma(lanes4<T> a, lanes4<T> b, lanes4<T> c) {
  return {fma(a.s0, b.s0, c.s0), fma(a.s1, b.s1, c.s1), fma(a.s2, b.s2, c.s2), fma(a.s3, b.s3, c.s3)};
}
FUNCTION float f32_of_f16(uint16_t x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
FUNCTION uint16_t f16_of_f32(float x) {
  uint16_t y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
#define uchar uint8_t
#define ushort uint16_t
#define uint uint32_t
#define ulong uint64_t
#define float2 lanes2<float>
#define double2 lanes2<double>
#define uint2 lanes2<uint32_t>
#define ulong2 lanes2<uint64_t>
#define float4 lanes4<float>
#define double4 lanes4<double>
#define uchar2 lanes2<uint8_t>
#define ushort2 lanes2<uint16_t>
#define uchar4 lanes4<uint8_t>
#define ushort4 lanes4<uint16_t>
#define uint4 lanes4<uint32_t>
#define ulong4 lanes4<uint64_t>
#define VECTOR2(T, a, b) (T(a, b))
#define VECTOR4(T, a, b, c, d) (T(a, b, c, d))
#define MULADD_f32(a, b, c) fma(a, b, c)
#define MULADD_f64(a, b, c) fma(a, b, c)
#define MULADD_i32(a, b, c) add_i32(mul_i32(a, b), c)
#define MULADD_u32(a, b, c) add_u32(mul_u32(a, b), c)
#define MULADD_i64(a, b, c) add_i64(mul_i64(a, b), c)
#define MULADD_u64(a, b, c) add_u64(mul_u64(a, b), c)

)";
  return fmt::format("{}{}", kNames, sharedPrelude());
}

}  // namespace aglow::codegen
