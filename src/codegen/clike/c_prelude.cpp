#include <fmt/format.h>

#include "codegen/clike/c_text.h"

namespace aglow::codegen {

std::string cPrelude() {
  return fmt::format(
      "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n\n#define WIDE double\n#define WIDE_MIN "
      "0x1p-1000\n"
      "#define WIDE_MAX 0x1p1000\n#define FUNCTION static inline\n{}",
      sharedPrelude());
}

std::string_view sharedPrelude() {
  return R"(// NaN wins.
#define ORDER(K, T)                                                                    \
  FUNCTION T min_##K(T a, T b) { return ((a < b) | (a != a)) ? a : b; }              \
  FUNCTION T max_##K(T a, T b) { return ((b < a) | (a != a)) ? a : b; }
// Sums and products wrap; a divisor of zero gives zero; a shift by the width or more gives zero. Reals are cut towards
// zero; what does not fit saturates, NaN is 0.
#define INTEGER(K, T, U, LOW, HIGH)                                                    \
  ORDER(K, T)                                                                          \
  FUNCTION T add_##K(T a, T b) { return (T)((U)a + (U)b); }                       \
  FUNCTION T sub_##K(T a, T b) { return (T)((U)a - (U)b); }                       \
  FUNCTION T mul_##K(T a, T b) { return (T)((U)a * (U)b); }                       \
  FUNCTION T neg_##K(T a) { return (T)(0 - (U)a); }                               \
  FUNCTION T abs_##K(T a) { return a < 0 ? neg_##K(a) : a; }                      \
  FUNCTION T div_##K(T a, T b) { return b == 0 ? 0 : LOW < 0 && b == (T)-1 ? neg_##K(a) : a / b; } \
  FUNCTION T rem_##K(T a, T b) { return b == 0 || (LOW < 0 && b == (T)-1) ? 0 : a % b; } \
  FUNCTION T shl_##K(T a, T b) { return (U)b >= 8 * sizeof(T) ? 0 : (T)((U)a << b); } \
  FUNCTION T shr_##K(T a, T b) { return (U)b >= 8 * sizeof(T) ? 0 : (T)((U)a >> b); } \
  FUNCTION T pow_##K(T a, T b) {                                                  \
    if (b < 0) return a == 1 ? 1 : a != (T)-1 ? 0 : b % 2 == 0 ? 1 : (T)-1;            \
    U result = 1, base = (U)a;                                                         \
    for (U e = (U)b; e != 0; e >>= 1, base *= base) result *= e & 1 ? base : 1;        \
    return (T)result;                                                                  \
  }                                                                                    \
  FUNCTION T K##_of(WIDE x) {                                                     \
    return x >= (WIDE)2 * (HIGH / 2 + 1) ? HIGH : x <= LOW ? LOW : x != x ? 0 : (T)x;      \
  }
ORDER(f32, float)
INTEGER(i32, int32_t, uint32_t, INT32_MIN, INT32_MAX)
INTEGER(u32, uint32_t, uint32_t, 0, UINT32_MAX)
INTEGER(i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)
INTEGER(u64, uint64_t, uint64_t, 0, UINT64_MAX)

// Words for f64, as the language has it; where it does not, they are defined before.
#ifndef PAIRS
typedef double f64, stored_f64;
#define STORED_F64_4 double4
#define F64(x, high, low) x
#define F64_ENTRY(x, high, low) x
#define load_f64(x) (x)
#define store_f64(x) (x)
ORDER(f64, f64)
#define add_f64(a, b) ((a) + (b))
#define sub_f64(a, b) ((a) - (b))
#define mul_f64(a, b) ((a) * (b))
#define div_f64(a, b) ((a) / (b))
#define rem_f64(a, b) fmod(a, b)
#define pow_f64(a, b) pow(a, b)
#define neg_f64(a) (-(a))
#define abs_f64(a) fabs(a)
#define floor_f64(a) floor(a)
#define round_f64(a) rint(a)
#define sqrt_f64(a) sqrt(a)
#define exp_f64(a) exp(a)
#define expm1_f64(a) expm1(a)
#define log_f64(a) log(a)
#define log1p_f64(a) log1p(a)
#define sin_f64(a) sin(a)
#define cos_f64(a) cos(a)
#define atan_f64(a) atan(a)
#define tanh_f64(a) tanh(a)
#define erf_f64(a) erf(a)
#define eq_f64(a, b) ((a) == (b))
#define lt_f64(a, b) ((a) < (b))
#define isnan_f64(a) ((a) != (a))
#define f64_of_bool(x) ((f64)(x))
#define f64_of_f32(x) ((f64)(x))
#define f64_of_i32(x) ((f64)(x))
#define f64_of_u32(x) ((f64)(x))
#define f64_of_i64(x) ((f64)(x))
#define f64_of_u64(x) ((f64)(x))
#define f32_of_f64(x) ((float)(x))
#define i32_of_f64(x) i32_of(x)
#define u32_of_f64(x) u32_of(x)
#define i64_of_f64(x) i64_of(x)
#define u64_of_f64(x) u64_of(x)
#define narrow_f64(x, format, saturate) narrow(x, format, saturate)
#define narrow_scale_f64(x, saturate, rounding) narrow_scale(x, saturate, rounding)
#endif

// Narrow floats in the integers that store them. Patterns of positive and negative values. f32 holds all of them.
struct narrow_float {
  int mantissa, bias;
  uint32_t sign, largest, overflow[2], nan[2];
};
#ifdef __cplusplus
#define NARROW_FLOAT(m, b, s, l, o0, o1, n0, n1) narrow_float{m, b, s, l, {o0, o1}, {n0, n1}}
#else
#define NARROW_FLOAT(m, b, s, l, o0, o1, n0, n1) ((struct narrow_float){m, b, s, l, {o0, o1}, {n0, n1}})
#endif
FUNCTION WIDE widen(uint32_t bits, struct narrow_float f) {
  const uint32_t magnitude = bits & (f.sign - 1), one = 1u << f.mantissa;
  const int exponent = (int)(magnitude >> f.mantissa);
  WIDE x = ldexp((WIDE)(exponent == 0 ? magnitude : (magnitude & (one - 1)) | one),
                   (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa);
  if (magnitude > f.largest || (bits == f.sign && f.nan[1] == f.sign))
    x = magnitude == f.overflow[0] && f.overflow[0] != f.nan[0] ? INFINITY : NAN;
  return bits & f.sign ? -x : x;
}
// To nearest even, rounded once.
FUNCTION uint32_t narrow(WIDE x, struct narrow_float f, bool saturate) {
  const int negative = signbit(x) != 0;
  if (x != x) return f.nan[negative];
  const WIDE a = fmin(fabs(x), WIDE_MAX);
  const int exponent = a < ldexp((WIDE)1, 1 - f.bias) ? 1 - f.bias : ilogb(a);
  const WIDE magnitude =
      rint(ldexp(a, f.mantissa - exponent)) + ldexp((WIDE)(exponent + f.bias - 1), f.mantissa);
  if (magnitude > f.largest) return saturate ? f.largest | (negative ? f.sign : 0) : f.overflow[negative];
  return magnitude == 0 && f.nan[1] == f.sign ? 0 : (uint32_t)magnitude | (negative ? f.sign : 0);
}
#ifndef NATIVE_HALVES
#define HALVES NARROW_FLOAT(10, 15, 32768, 31743, 31744, 64512, 32256, 65024)
FUNCTION float f32_of_f16(uint16_t x) { return (float)widen(x, HALVES); }
FUNCTION uint16_t f16_of_f32(float x) { return (uint16_t)narrow(x, HALVES, 0); }
#endif
// Powers of two from 2^-127 on; rounding is 0 to nearest, 1 up, 2 down.
FUNCTION WIDE widen_scale(uint8_t bits) { return bits == 255 ? NAN : ldexp((WIDE)1, bits - 127); }
FUNCTION uint8_t narrow_scale(WIDE x, bool saturate, int rounding) {
  if (!(x >= 0) || (!saturate && x > WIDE_MAX)) return 255;
  int exponent;
  const WIDE fraction = frexp(fmin(fmax(x, WIDE_MIN), WIDE_MAX), &exponent);
  const int code = exponent + 126 + ((rounding == 1 && fraction > (WIDE)0.5) || (rounding == 0 && fraction >= (WIDE)0.75));
  return code >= 0 && code < 255 ? (uint8_t)code : !saturate ? 255 : code < 0 ? 0 : 254;
}
)";
}

}  // namespace aglow::codegen
