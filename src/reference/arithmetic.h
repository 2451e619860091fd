// Arithmetic of the domains in which reference kernels compute: doubles as IEEE has it, integers wrapping in 64 bits.
// Every function is total, whatever the operands.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/convert.h"

namespace aglow {

template <class D>
inline constexpr bool kReal = std::is_floating_point_v<D>;

// Sums and products of integers wrap alike with and without sign; kernels that only need those compute unsigned.
template <class F>
decltype(auto) inWrappingDomain(ElemKind kind, F&& f) {
  return inDomain(isFloat(kind) ? Domain::Float : Domain::Unsigned, f);
}

template <class D>
D sum(D a, D b) {
  if constexpr (kReal<D>)
    return a + b;
  else
    return static_cast<D>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <class D>
D difference(D a, D b) {
  if constexpr (kReal<D>)
    return a - b;
  else
    return static_cast<D>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

template <class D>
D product(D a, D b) {
  if constexpr (kReal<D>)
    return a * b;
  else
    return static_cast<D>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Integers: towards zero; a divisor of zero gives zero. Minus one is apart, because the lowest value divided by it
// traps.
template <class D>
D quotient(D a, D b) {
  if constexpr (kReal<D>) {
    return a / b;
  } else {
    if (b == D{0}) return 0;
    if constexpr (std::is_signed_v<D>)
      if (b == D{-1}) return difference(D{0}, a);
    return a / b;
  }
}

// The sign of the dividend; integers: a divisor of zero gives zero.
template <class D>
D remainder(D a, D b) {
  if constexpr (kReal<D>) {
    return std::fmod(a, b);
  } else {
    if (b == D{0}) return 0;
    if constexpr (std::is_signed_v<D>)
      if (b == D{-1}) return 0;
    return a % b;
  }
}

// Integers: exact but for wrapping; a negative exponent gives zero unless the base is 1 or -1.
template <class D>
D power(D base, D exponent) {
  if constexpr (kReal<D>) {
    return std::pow(base, exponent);
  } else {
    if constexpr (std::is_signed_v<D>) {
      if (exponent < 0) {
        if (base != 1 && base != -1) return 0;
        return base == 1 || exponent % 2 == 0 ? 1 : -1;
      }
    }
    D result = 1;
    for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
      if ((e & 1) != 0) result = product(result, base);
      base = product(base, base);
    }
    return result;
  }
}

template <class D>
bool isNan(D value) {
  return value != value;
}

// NaN wins in both.
template <class D>
D smaller(D a, D b) {
  return a < b || isNan(a) ? a : b;
}
template <class D>
D larger(D a, D b) {
  return b < a || isNan(a) ? a : b;
}

// To nearest, halves to even, whatever the rounding mode of the thread.
inline double roundHalfEven(double value) {
  const double down = std::floor(value);
  const double rest = value - down;
  const bool up = rest > 0.5 || (rest == 0.5 && 2 * std::floor(down / 2) != down);
  return std::copysign(up ? down + 1 : down, value);
}

// The ends of what a kind can hold: infinities where it has them.
template <class D>
D highestOf(ElemKind kind);
template <class D>
D lowestOf(ElemKind kind);

}  // namespace aglow
