// What is the same in all C files: the words that kernels are written in, the hash of weights, and the structures of
// include/aglow/bundle.h.
#include <fmt/format.h>

#include "backends/csource/bundle.h"
#include "codegen/clike/c_text.h"

namespace aglow::csource {

// Between two steps memory may change its type, which compilers are told where they have a way to be.
std::string prelude() {
  constexpr std::string_view kWords = R"(
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "the weights are little-endian"
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wtype-limits"
#define FUNCTION static inline __attribute__((unused))
#define MEMORY_CHANGES() __asm__ volatile("" ::: "memory")
#else
#define FUNCTION static inline
#define MEMORY_CHANGES() ((void)0)
#endif
/* After each step, with the number of its instruction: for times on the target, as by -include of a file that defines it. */
#ifndef AGLOW_STEP
#define AGLOW_STEP(number) ((void)0)
#endif
#define STEP_ENDS(number) \
  do {                    \
    MEMORY_CHANGES();     \
    AGLOW_STEP(number);   \
  } while (0)

/* ---- what kernels are written in ---- */

#define MULADD_f32(a, b, c) ((a) * (b) + (c))
#define MULADD_f64(a, b, c) ((a) * (b) + (c))
#define MULADD_i32(a, b, c) add_i32(mul_i32(a, b), c)
#define MULADD_u32(a, b, c) add_u32(mul_u32(a, b), c)
#define MULADD_i64(a, b, c) add_i64(mul_i64(a, b), c)
#define MULADD_u64(a, b, c) add_u64(mul_u64(a, b), c)
#define ATOMIC_SET_ONCE(p) (*(p) == 0 && (*(p) = 1) == 1)
#define ATOMIC_MAX(p, x) ((void)(*(p) = *(p) < (x) ? (x) : *(p)))
#define ATOMIC_ADD(p, x) ((*(p) += (x)) - (x))
FUNCTION int32_t BITS_OF_F32(float x) {
  int32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
#define WIDE double
#define WIDE_MIN 0x1p-1000
#define WIDE_MAX 0x1p1000
)";
  return fmt::format("{}{}", kWords, codegen::sharedPrelude());
}

const char* hashText() {
  return R"(
static uint64_t aglow_hash_of(const uint8_t *bytes, size_t lines) {
  const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15);
  uint64_t state[8] = {1, 2, 3, 4, 5, 6, 7, 8}, hash = lines;
  for (size_t line = 0; line < lines; ++line, bytes += 64)
    for (int i = 0; i < 8; ++i) {
      uint64_t word;
      memcpy(&word, bytes + 8 * i, 8);
      word = (state[i] ^ word) * odd;
      state[i] = word ^ (word >> 29);
    }
  for (int i = 0; i < 8; ++i) {
    hash = (hash ^ state[i]) * odd;
    hash ^= hash >> 32;
  }
  return hash;
}

/* An address that may be used: not null, and aligned. */
static int aglow_fits(const void *address) { return address != NULL && ((uintptr_t)address & 63) == 0; }

/* What a kernel notes of an index that lies outside of its axis. */
struct fault {
  int32_t seen, unused;
  int64_t index;
};
)";
}

}  // namespace aglow::csource
