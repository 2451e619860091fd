// Sums and products of two floats are known exactly as pairs, by what rounding them loses; all else follows from those.
// Functions begin with what f32 gives, or reduce their argument and add up a series.
#include "codegen/clike/c_text.h"

namespace aglow::codegen {

std::string_view pairsPrelude() {
  return R"(#ifdef PAIRS
typedef struct {
  float high, low;
} f64;
typedef ulong stored_f64;
#define STORED_F64_4 ulong4
#define F64(x, high, low) ((f64){high, low})
#define F64_ENTRY(x, high, low) {high, low}
#define PAIR(x) ((f64){x, 0.0f})

// Where |a| >= |b|; zeros keep the sign of the first. What is not finite has nothing beside it.
static inline f64 close_pair(float a, float b) {
  const float sum = b == 0 ? a : a + b;
  return (f64){sum, fabs(sum) <= FLT_MAX ? b - (sum - a) : 0.0f};
}
static inline f64 sum_of(float a, float b) {
  const float sum = a + b, rest = sum - a;
  return (f64){sum, fabs(sum) <= FLT_MAX ? (a - (sum - rest)) + (b - rest) : 0.0f};
}
static inline f64 product_of(float a, float b) {
  const float product = a * b;
  return (f64){product, fabs(product) <= FLT_MAX ? fma(a, b, -product) : 0.0f};
}
static inline f64 scaled(f64 a, int exponent) { return (f64){ldexp(a.high, exponent), ldexp(a.low, exponent)}; }
static inline bool finite_f64(f64 a) { return fabs(a.high) <= FLT_MAX; }

static inline f64 neg_f64(f64 a) { return (f64){-a.high, -a.low}; }
static inline f64 abs_f64(f64 a) { return signbit(a.high) ? neg_f64(a) : a; }
static inline bool eq_f64(f64 a, f64 b) { return a.high == b.high && a.low == b.low; }
static inline bool lt_f64(f64 a, f64 b) { return a.high < b.high || (a.high == b.high && a.low < b.low); }
static inline bool isnan_f64(f64 a) { return a.high != a.high; }
static inline f64 min_f64(f64 a, f64 b) { return lt_f64(a, b) || isnan_f64(a) ? a : b; }
static inline f64 max_f64(f64 a, f64 b) { return lt_f64(b, a) || isnan_f64(a) ? a : b; }

static inline f64 add_f64(f64 a, f64 b) {
  f64 sum = sum_of(a.high, b.high);
  const f64 rest = sum_of(a.low, b.low);
  sum = close_pair(sum.high, sum.low + rest.high);
  return close_pair(sum.high, sum.low + rest.low);
}
static inline f64 sub_f64(f64 a, f64 b) { return add_f64(a, neg_f64(b)); }
static inline f64 mul_f64(f64 a, f64 b) {
  const f64 product = product_of(a.high, b.high);
  if (!finite_f64(product)) return product;
  return close_pair(product.high, product.low + fma(a.high, b.low, fma(a.low, b.high, a.low * b.low)));
}
// A quotient of the first parts, then what is left of the dividend, twice.
static inline f64 div_f64(f64 a, f64 b) {
  const float first = a.high / b.high;
  if (!(fabs(first) <= FLT_MAX) || first == 0 || !finite_f64(b)) return PAIR(first);
  const f64 rest = sub_f64(a, mul_f64(b, PAIR(first)));
  const float second = rest.high / b.high;
  const float third = sub_f64(rest, mul_f64(b, PAIR(second))).high / b.high;
  return add_f64(close_pair(first, second), PAIR(third));
}
static inline f64 sqrt_f64(f64 a) {
  const float root = sqrt(a.high);
  if (!(root > 0) || !finite_f64(a)) return PAIR(root);
  const f64 first = close_pair(root, sub_f64(a, product_of(root, root)).high / (2 * root));
  return add_f64(first, PAIR(sub_f64(a, mul_f64(first, first)).high / (2 * root)));
}
static inline f64 floor_f64(f64 a) {
  const float whole = floor(a.high);
  return whole == a.high ? close_pair(whole, floor(a.low)) : PAIR(whole);
}
// To even, of what lies halfway: that is either the second part's matter, or decided by its sign.
static inline f64 round_f64(f64 a) {
  const float whole = rint(a.high);
  if (whole == a.high) return close_pair(whole, rint(a.low));
  const float over = a.high - whole;
  if (fabs(over) != 0.5f || over * a.low <= 0) return PAIR(whole);
  return PAIR(whole + 2 * over);
}
// Bit by bit of the quotient: each difference is exact.
static inline f64 rem_f64(f64 a, f64 b) {
  const f64 by = abs_f64(b);
  f64 rest = abs_f64(a);
  if (!finite_f64(a) || isnan_f64(b) || by.high == 0) return PAIR(NAN);
  if (!finite_f64(b) || lt_f64(rest, by)) return a;
  for (int i = ilogb(rest.high) - ilogb(by.high) + 1; i >= 0; --i) {
    const f64 part = scaled(by, i);
    if (finite_f64(part) && !lt_f64(rest, part)) rest = sub_f64(rest, part);
  }
  return signbit(a.high) ? neg_f64(rest) : rest;
}

// The bits of an f64 in memory. What leaves the range of f32 is infinite, or zero.
static inline f64 load_f64(ulong bits) {
  const int exponent = (int)(bits >> 52 & 2047) - 1023;
  const ulong fraction = bits & 0xfffffffffffffUL, whole = fraction | 1UL << 52, high = (whole + (1UL << 28)) >> 29;
  f64 value;
  if (exponent == 1024)
    value = PAIR(fraction != 0 ? NAN : INFINITY);
  else if (exponent > 127)
    value = PAIR(INFINITY);
  else if (exponent < -160)
    value = PAIR(0.0f);
  else
    value = close_pair(ldexp((float)high, exponent - 23), ldexp((float)(long)(whole - (high << 29)), exponent - 52));
  return bits >> 63 ? neg_f64(value) : value;
}
static inline ulong store_f64(f64 a) {
  const ulong sign = (ulong)(signbit(a.high) != 0) << 63;
  if (a.high == 0) return sign;
  if (isnan_f64(a)) return 0x7ff8000000000000UL;
  if (!finite_f64(a)) return sign | 0x7ff0000000000000UL;
  a = abs_f64(a);
  // The sum as an integer of 62 bits or one less, rounded to 53.
  int exponent = ilogb(a.high);
  ulong whole = (ulong)ldexp(a.high, 23 - exponent) << 38;
  whole += (ulong)(long)ldexp(a.low, 61 - exponent);
  if (whole < 1UL << 61) {
    whole <<= 1;
    --exponent;
  }
  whole += 255 + (whole >> 9 & 1);
  return sign | (((ulong)(exponent + 1022) << 52) + (whole >> 9));
}

// Whole numbers in parts that floats hold.
static inline f64 f64_of_u64(ulong x) {
  const f64 high = close_pair((float)(x >> 40) * 0x1p40f, (float)(x >> 16 & 0xffffff) * 0x1p16f);
  return add_f64(high, PAIR((float)(x & 0xffff)));
}
static inline f64 f64_of_i64(long x) { return x < 0 ? neg_f64(f64_of_u64(0 - (ulong)x)) : f64_of_u64((ulong)x); }
#define f64_of_u32(x) f64_of_u64(x)
#define f64_of_i32(x) f64_of_i64(x)
#define f64_of_bool(x) PAIR((float)(x))
#define f64_of_f32(x) PAIR(x)
#define f32_of_f64(x) ((x).high)
// Of a number from 0 up to 2^64.
static inline ulong whole_part(f64 a) {
  const f64 whole = floor_f64(a);
  const ulong high = whole.high < 0x1p64f ? (ulong)whole.high : 0;
  return high + (ulong)(long)whole.low;
}
static inline ulong u64_of_f64(f64 a) {
  if (!(a.high >= 0)) return 0;
  return lt_f64(a, PAIR(0x1p64f)) ? whole_part(a) : ULONG_MAX;
}
static inline long i64_of_f64(f64 a) {
  if (isnan_f64(a)) return 0;
  const bool negative = a.high < 0;
  if (!lt_f64(abs_f64(a), PAIR(0x1p63f))) return negative ? LONG_MIN : LONG_MAX;
  const long whole = (long)whole_part(abs_f64(a));
  return negative ? -whole : whole;
}
static inline int i32_of_f64(f64 a) { return (int)clamp(i64_of_f64(a), (long)INT_MIN, (long)INT_MAX); }
static inline uint u32_of_f64(f64 a) { return (uint)min(u64_of_f64(a), (ulong)UINT_MAX); }
// One float that every narrower kind rounds as it would round the pair: of those beside it the odd one.
static inline float odd_float(f64 a) {
  const int bits = as_int(a.high);
  if (a.low == 0 || (bits & 1) != 0) return a.high;
  return as_float((a.low < 0) == (a.high < 0) ? bits + 1 : bits - 1);
}
#define narrow_f64(x, format, saturate) narrow(odd_float(x), format, saturate)
#define narrow_scale_f64(x, saturate, rounding) narrow_scale(odd_float(x), saturate, rounding)

#define LN2_F64 F64(0.6931471805599453, 0x1.62e43p-1f, -0x1.05c610p-29f)
#define HALF_PI_F64 F64(1.5707963267948966, 0x1.921fb6p+0f, -0x1.777a5cp-25f)
// exp(x) - 1 near 0: of a 64th by its series, then e (e + 2) for twice the argument.
static f64 expm1_near(f64 x) {
  const f64 part = scaled(x, -6);
  f64 sum = PAIR(1.0f);
  for (int n = 8; n > 1; --n) sum = add_f64(PAIR(1.0f), div_f64(mul_f64(part, sum), PAIR((float)n)));
  sum = mul_f64(part, sum);
  for (int i = 0; i < 6; ++i) sum = mul_f64(sum, add_f64(sum, PAIR(2.0f)));
  return sum;
}
static f64 exp_f64(f64 x) {
  if (!(fabs(x.high) < 104)) return PAIR(exp(x.high));
  const float twos = rint(x.high * 0x1.715476p+0f);
  f64 rest = sub_f64(x, product_of(twos, 0x1.62e43p-1f));
  rest = sub_f64(rest, product_of(twos, -0x1.05c610p-29f));
  rest = sub_f64(rest, PAIR(twos * -0x1.950d88p-54f));
  const f64 near = add_f64(PAIR(1.0f), expm1_near(rest));
  // In two steps: one alone may leave the range of factors.
  const int first = (int)twos / 2;
  const f64 result = scaled(scaled(near, first), (int)twos - first);
  return finite_f64(result) ? result : PAIR(result.high);
}
static f64 expm1_f64(f64 x) {
  if (x.high == 0) return x;
  return fabs(x.high) < 0.35f ? expm1_near(x) : sub_f64(exp_f64(x), PAIR(1.0f));
}
// log((1 + s) / (1 - s)), for |s| up to 0.2.
static f64 log_ratio(f64 s) {
  const f64 square = mul_f64(s, s);
  f64 sum = PAIR(0.0f);
  for (int n = 25; n > 0; n -= 2) sum = add_f64(div_f64(PAIR(1.0f), PAIR((float)n)), mul_f64(square, sum));
  return mul_f64(scaled(s, 1), sum);
}
static f64 log_f64(f64 x) {
  if (!(x.high > 0) || !finite_f64(x)) return PAIR(log(x.high));
  int twos = ilogb(x.high);
  if (ldexp(x.high, -twos) > 1.4142135f) ++twos;
  const f64 near = sub_f64(scaled(x, -twos), PAIR(1.0f));
  const f64 rest = log_ratio(div_f64(near, add_f64(near, PAIR(2.0f))));
  return twos == 0 ? rest : add_f64(mul_f64(LN2_F64, PAIR((float)twos)), rest);
}
static f64 log1p_f64(f64 x) {
  if (x.high == 0) return x;
  return fabs(x.high) < 0.4f ? log_ratio(div_f64(x, add_f64(x, PAIR(2.0f)))) : log_f64(add_f64(x, PAIR(1.0f)));
}
// Sine and cosine of the rest by pi / 2, and the quadrant. All turns are taken off at once, so that every step leaves
// little, of which it may lose a part.
static int sin_cos(f64 x, f64* sine, f64* cosine) {
  int quadrant = 0;
  for (int i = 0; i < 8 && fabs(x.high) > 0.7854f; ++i) {
    const f64 turns = round_f64(mul_f64(x, F64(0.6366197723675814, 0x1.45f306p-1f, 0x1.b9391p-26f)));
    x = sub_f64(x, product_of(turns.high, 0x1.921fb6p+0f));
    x = sub_f64(x, product_of(turns.low, 0x1.921fb6p+0f));
    x = sub_f64(x, product_of(turns.high, -0x1.777a5cp-25f));
    x = sub_f64(x, product_of(turns.low, -0x1.777a5cp-25f));
    x = sub_f64(x, mul_f64(turns, F64(-1.7151e-15, -0x1.ee59dap-50f, 0x1.98a2e0p-77f)));
    quadrant += (int)(turns.high - 4 * floor(turns.high / 4)) + (int)(turns.low - 4 * floor(turns.low / 4));
  }
  const f64 square = mul_f64(x, x);
  f64 odd = PAIR(1.0f), even = PAIR(1.0f);
  for (int n = 19; n > 1; n -= 2) {
    odd = sub_f64(PAIR(1.0f), div_f64(mul_f64(square, odd), PAIR((float)(n * (n - 1)))));
    even = sub_f64(PAIR(1.0f), div_f64(mul_f64(square, even), PAIR((float)((n - 1) * (n - 2)))));
  }
  *sine = mul_f64(x, odd);
  *cosine = even;
  return quadrant & 3;
}
static f64 turned(f64 x, int more) {
  if (!finite_f64(x)) return PAIR(NAN);
  f64 sine, cosine;
  const int quadrant = (sin_cos(x, &sine, &cosine) + more) & 3;
  const f64 value = quadrant & 1 ? cosine : sine;
  return quadrant & 2 ? neg_f64(value) : value;
}
static f64 sin_f64(f64 x) { return x.high == 0 ? x : turned(x, 0); }
static f64 cos_f64(f64 x) { return turned(x, 1); }
// The angle that f32 finds, and the rest by the tangent of a difference.
static f64 atan_f64(f64 x) {
  if (isnan_f64(x) || x.high == 0) return x;
  const f64 size = abs_f64(x);
  const bool steep = lt_f64(PAIR(1.0f), size);
  const f64 slope = steep ? div_f64(PAIR(1.0f), size) : size;
  const float angle = atan(slope.high);
  f64 sine, cosine;
  sin_cos(PAIR(angle), &sine, &cosine);
  f64 found = add_f64(PAIR(angle), div_f64(sub_f64(mul_f64(slope, cosine), sine), add_f64(cosine, mul_f64(slope, sine))));
  if (steep) found = sub_f64(HALF_PI_F64, found);
  return signbit(x.high) ? neg_f64(found) : found;
}
static f64 tanh_f64(f64 x) {
  if (isnan_f64(x) || x.high == 0) return x;
  f64 found = PAIR(1.0f);
  if (fabs(x.high) < 20) {
    const f64 grown = expm1_f64(scaled(abs_f64(x), 1));
    found = div_f64(grown, add_f64(grown, PAIR(2.0f)));
  }
  return signbit(x.high) ? neg_f64(found) : found;
}
// Up to 2 a series without cancellation; from there one less a continued fraction.
static f64 erf_f64(f64 x) {
  if (isnan_f64(x) || x.high == 0) return x;
  const f64 size = abs_f64(x), square = mul_f64(size, size), fall = exp_f64(neg_f64(square));
  f64 found;
  if (size.high < 2) {
    f64 term = size, sum = size;
    for (int n = 1; n < 60 && term.high > 0x1p-52f * sum.high; ++n) {
      term = div_f64(mul_f64(term, scaled(square, 1)), PAIR((float)(2 * n + 1)));
      sum = add_f64(sum, term);
    }
    found = mul_f64(mul_f64(fall, sum), F64(1.1283791670955126, 0x1.20dd76p+0f, -0x1.f7ac92p-25f));
  } else if (size.high < 6) {
    f64 below = size;
    for (int n = 60; n > 0; --n) below = add_f64(size, div_f64(PAIR(0.5f * (float)n), below));
    const f64 tail = mul_f64(div_f64(fall, below), F64(0.5641895835477563, 0x1.20dd76p-1f, -0x1.f7ac92p-26f));
    found = sub_f64(PAIR(1.0f), tail);
  } else {
    found = PAIR(1.0f);
  }
  return signbit(x.high) ? neg_f64(found) : found;
}
// Special values are those of C, by all of both numbers. Small whole powers by multiplication, as long as that stays
// where pairs have all of their bits.
static f64 pow_f64(f64 x, f64 y) {
  const f64 one = PAIR(1.0f), size = abs_f64(x), halved = scaled(y, -1);
  if (y.high == 0 || eq_f64(x, one)) return one;
  if (isnan_f64(x) || isnan_f64(y)) return PAIR(NAN);
  if (!finite_f64(y)) return eq_f64(size, one) ? one : PAIR(lt_f64(one, size) == (y.high > 0) ? INFINITY : 0.0f);
  const bool whole = eq_f64(round_f64(y), y);
  f64 power;
  if (size.high == 0 || !finite_f64(size)) {
    power = PAIR((size.high == 0) == (y.high > 0) ? 0.0f : INFINITY);
  } else {
    if (x.high < 0 && !whole) return PAIR(NAN);
    bool multiplied = whole && fabs(y.high) <= 64;
    if (multiplied) {
      f64 base = size;
      power = one;
      for (int n = (int)fabs(y.high); n > 0; n >>= 1) {
        if (n & 1) power = mul_f64(power, base);
        base = mul_f64(base, base);
      }
      if (y.high < 0) {
        multiplied = power.high > 0x1p-90f && finite_f64(power);
        power = div_f64(one, power);
      }
    }
    if (!multiplied) power = exp_f64(mul_f64(y, log_f64(size)));
  }
  return signbit(x.high) && whole && !eq_f64(round_f64(halved), halved) ? neg_f64(power) : power;
}
#endif
)";
}

}  // namespace aglow::codegen
