// Functions of f64 for generated code: aglow_NAME_f64_wW(vectors), and _w1 on plain doubles. Doubles are rare in
// networks, so each lane is a call of the C library.
#include "backends/cpu/kernels/math/lanes.h"

using namespace aglow::cpu;

extern "C" {
double exp(double);
double expm1(double);
double log(double);
double log1p(double);
double sin(double);
double cos(double);
double atan(double);
double tanh(double);
double erf(double);
double pow(double, double);
double fmod(double, double);
}

namespace {

template <double (*F)(double), int W>
AGLOW_INLINE F64<W> eachLane(F64<W> x) {
  for (int lane = 0; lane < W; ++lane) x[lane] = F(x[lane]);
  return x;
}
template <double (*F)(double, double), int W>
AGLOW_INLINE F64<W> eachLane(F64<W> x, F64<W> y) {
  for (int lane = 0; lane < W; ++lane) x[lane] = F(x[lane], y[lane]);
  return x;
}

}  // namespace

#define AGLOW_UNARY_W(NAME, W) \
  extern "C" F64<W> aglow_##NAME##_f64_w##W(F64<W> x) { return eachLane<NAME, W>(x); }
#define AGLOW_UNARY(NAME)                                               \
  extern "C" double aglow_##NAME##_f64_w1(double x) { return NAME(x); } \
  AGLOW_UNARY_W(NAME, 4)                                                \
  AGLOW_UNARY_W(NAME, 8)                                                \
  AGLOW_UNARY_W(NAME, 16)
#define AGLOW_BINARY_W(NAME, FUNCTION, W) \
  extern "C" F64<W> aglow_##NAME##_f64_w##W(F64<W> x, F64<W> y) { return eachLane<FUNCTION, W>(x, y); }
#define AGLOW_BINARY(NAME, FUNCTION)                                                     \
  extern "C" double aglow_##NAME##_f64_w1(double x, double y) { return FUNCTION(x, y); } \
  AGLOW_BINARY_W(NAME, FUNCTION, 4)                                                      \
  AGLOW_BINARY_W(NAME, FUNCTION, 8)                                                      \
  AGLOW_BINARY_W(NAME, FUNCTION, 16)

AGLOW_UNARY(exp)
AGLOW_UNARY(expm1)
AGLOW_UNARY(log)
AGLOW_UNARY(log1p)
AGLOW_UNARY(sin)
AGLOW_UNARY(cos)
AGLOW_UNARY(atan)
AGLOW_UNARY(tanh)
AGLOW_UNARY(erf)
AGLOW_BINARY(pow, pow)
AGLOW_BINARY(rem, fmod)
