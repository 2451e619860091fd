// Functions of f32 for generated code: aglow_NAME_f32_wW(vectors), and _w1 on plain floats.
#include "backends/cpu/kernels/math/exp_log_f32.h"
#include "backends/cpu/kernels/math/pow_f32.h"
#include "backends/cpu/kernels/math/tanh_erf_f32.h"
#include "backends/cpu/kernels/math/trig_f32.h"

using namespace aglow::cpu;

#define AGLOW_UNARY_W(NAME, W) \
  extern "C" F32<W> aglow_##NAME##_f32_w##W(F32<W> x) { return NAME(x); }
#define AGLOW_UNARY(NAME)                                                        \
  extern "C" float aglow_##NAME##_f32_w1(float x) { return NAME(F32<1>(x))[0]; } \
  AGLOW_UNARY_W(NAME, 4)                                                         \
  AGLOW_UNARY_W(NAME, 8)                                                         \
  AGLOW_UNARY_W(NAME, 16)
#define AGLOW_BINARY_W(NAME, W) \
  extern "C" F32<W> aglow_##NAME##_f32_w##W(F32<W> x, F32<W> y) { return NAME(x, y); }
#define AGLOW_BINARY(NAME)                                                                           \
  extern "C" float aglow_##NAME##_f32_w1(float x, float y) { return NAME(F32<1>(x), F32<1>(y))[0]; } \
  AGLOW_BINARY_W(NAME, 4)                                                                            \
  AGLOW_BINARY_W(NAME, 8)                                                                            \
  AGLOW_BINARY_W(NAME, 16)

AGLOW_UNARY(exp)
AGLOW_UNARY(expm1)
AGLOW_UNARY(log)
AGLOW_UNARY(log1p)
AGLOW_UNARY(sin)
AGLOW_UNARY(cos)
AGLOW_UNARY(atan)
AGLOW_UNARY(tanh)
AGLOW_UNARY(erf)
AGLOW_BINARY(pow)
AGLOW_BINARY(rem)
