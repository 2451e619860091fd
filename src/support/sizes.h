// Arithmetic on sizes that come from files: a result that does not fit is an answer, never a small number.
#pragma once

#include <cstdint>
#include <optional>

namespace aglow {

inline std::optional<int64_t> checkedAdd(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<int64_t> checkedSub(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_sub_overflow(a, b, &r)) return std::nullopt;
  return r;
}

inline std::optional<int64_t> checkedMul(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

// Quotients rounded towards minus and plus infinity; b is positive.
constexpr int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr int64_t ceilDiv(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// The next multiple of a power of two.
constexpr int64_t alignUp(int64_t value, int64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

}  // namespace aglow
