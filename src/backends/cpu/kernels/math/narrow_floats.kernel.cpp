// Narrow floats for generated code: aglow_widen_KIND_wW(stored) gives f32, aglow_narrow_KIND_wW(f32) what is stored,
// and aglow_narrow_KIND_f64_w1(f64) rounds a double once; _w1 takes and gives plain numbers. Narrowing to kinds of 8
// and 4 bits also takes Cast's attributes: saturate, and the rounding of f8e8m0 (0 nearest, 1 up, 2 down).
#include "backends/cpu/kernels/math/narrow_floats.h"

using namespace aglow;
using namespace aglow::cpu;

// The type of a vector, and the plain number for one lane.
#define AGLOW_WIDTHS(M, ...) M(4, __VA_ARGS__) M(8, __VA_ARGS__) M(16, __VA_ARGS__)

#define AGLOW_WIDEN_W(W, KIND, STORED, FUNCTION) \
  extern "C" F32<W> aglow_widen_##KIND##_w##W(Lanes<STORED, W> stored) { return FUNCTION(stored); }
#define AGLOW_WIDEN(KIND, STORED, FUNCTION)                                                                 \
  extern "C" float aglow_widen_##KIND##_w1(STORED stored) { return FUNCTION(Lanes<STORED, 1>(stored))[0]; } \
  AGLOW_WIDTHS(AGLOW_WIDEN_W, KIND, STORED, FUNCTION)

#define AGLOW_NARROW16_W(W, KIND, FORMAT)                                  \
  extern "C" Lanes<uint16_t, W> aglow_narrow_##KIND##_w##W(F32<W> value) { \
    return narrowFloat<FORMAT, uint16_t>(value);                           \
  }
#define AGLOW_NARROW16(KIND, FORMAT)                               \
  extern "C" uint16_t aglow_narrow_##KIND##_w1(float value) {      \
    return narrowFloat<FORMAT, uint16_t>(F32<1>(value))[0];        \
  }                                                                \
  extern "C" uint16_t aglow_narrow_##KIND##_f64_w1(double value) { \
    return narrowFloat<FORMAT, uint16_t>(F64<1>(value))[0];        \
  }                                                                \
  AGLOW_WIDTHS(AGLOW_NARROW16_W, KIND, FORMAT)

#define AGLOW_NARROW8_W(W, KIND, FUNCTION)                                                             \
  extern "C" Lanes<uint8_t, W> aglow_narrow_##KIND##_w##W(F32<W> value, bool saturate, int rounding) { \
    return FUNCTION(value, saturate, rounding);                                                        \
  }
#define AGLOW_NARROW8(KIND, FUNCTION)                                                          \
  extern "C" uint8_t aglow_narrow_##KIND##_w1(float value, bool saturate, int rounding) {      \
    return FUNCTION(F32<1>(value), saturate, rounding)[0];                                     \
  }                                                                                            \
  extern "C" uint8_t aglow_narrow_##KIND##_f64_w1(double value, bool saturate, int rounding) { \
    return FUNCTION(F64<1>(value), saturate, rounding)[0];                                     \
  }                                                                                            \
  AGLOW_WIDTHS(AGLOW_NARROW8_W, KIND, FUNCTION)

namespace {

template <FloatFormat F, int W, class Real>
AGLOW_INLINE Lanes<uint8_t, W> narrowByte(Lanes<Real, W> value, bool saturate, int) {
  return narrowFloat<F, uint8_t>(value, saturate);
}

}  // namespace

#define AGLOW_KIND16(KIND, FORMAT)                \
  AGLOW_WIDEN(KIND, uint16_t, widenFloat<FORMAT>) \
  AGLOW_NARROW16(KIND, FORMAT)
#define AGLOW_KIND8(KIND, FORMAT)                \
  AGLOW_WIDEN(KIND, uint8_t, widenFloat<FORMAT>) \
  AGLOW_NARROW8(KIND, narrowByte<FORMAT>)

AGLOW_KIND16(f16, kFloat16Format)
AGLOW_KIND16(bf16, kBFloat16Format)
AGLOW_KIND8(f8e4m3fn, kE4M3FNFormat)
AGLOW_KIND8(f8e4m3fnuz, kE4M3FNUZFormat)
AGLOW_KIND8(f8e5m2, kE5M2Format)
AGLOW_KIND8(f8e5m2fnuz, kE5M2FNUZFormat)
AGLOW_KIND8(f4e2m1, kE2M1Format)
AGLOW_WIDEN(f8e8m0, uint8_t, widenScale)
AGLOW_NARROW8(f8e8m0, narrowScale)
