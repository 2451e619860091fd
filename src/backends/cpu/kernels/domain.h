// Arithmetic of the domains in which the general kernels compute, with the rules of the reference kernels: floats of
// all widths add up in double, integers wrap in 64 bits, and NaN wins in max and min. Integers without sign meet
// comparisons with their highest bit flipped, which gives them the order of signed ones.
#pragma once

#include "backends/cpu/kernels/abi.h"

namespace aglow::cpu {

enum Combination : int64_t { kSum, kProd, kMax, kMin };

// What values of a domain add up in.
template <class D>
struct Wide {
  using Type = double;
};
template <>
struct Wide<int64_t> {
  using Type = int64_t;
};
template <class D>
using WideOf = typename Wide<D>::Type;

inline constexpr int64_t kSignBit = INT64_MIN;

[[gnu::always_inline]] inline double flipped(double value, int64_t) { return value; }
[[gnu::always_inline]] inline float flipped(float value, int64_t) { return value; }
[[gnu::always_inline]] inline int64_t flipped(int64_t value, int64_t flip) { return value ^ flip; }

[[gnu::always_inline]] inline double added(double a, double b) { return a + b; }
[[gnu::always_inline]] inline int64_t added(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
[[gnu::always_inline]] inline double multiplied(double a, double b) { return a * b; }
[[gnu::always_inline]] inline int64_t multiplied(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <class A>
[[gnu::always_inline]] inline A combined(int64_t how, A a, A b) {
  if (how == kSum) return added(a, b);
  if (how == kProd) return multiplied(a, b);
  if (how == kMax) return b < a || a != a ? a : b;
  return a < b || a != a ? a : b;
}

// Towards zero; nothing where the divisor is zero.
[[gnu::always_inline]] inline double divided(double a, int64_t b, bool) { return a / static_cast<double>(b); }
[[gnu::always_inline]] inline int64_t divided(int64_t a, int64_t b, bool withoutSign) {
  if (b == 0) return 0;
  return withoutSign ? static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b)) : a / b;
}

}  // namespace aglow::cpu
