// Between stored elements and the three domains in which reference kernels compute: double, int64 and uint64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace aglow {

// The widest type that holds every value of a kind: double for floats, int64 for signed and quantized (raw bits),
// uint64 for unsigned and bool.
enum class Domain : uint8_t { Float, Signed, Unsigned };
Domain domainOf(ElemKind kind);

// How a value between two powers of two becomes a Float8E8M0; ties of Nearest go up.
enum class ScaleRounding : uint8_t { Nearest, Up, Down };

// Reads count elements starting at index first into D (double, int64_t or uint64_t); stride is in elements. A float
// read as an integer is truncated and saturated, NaN is 0; integers of another sign wrap.
template <class D>
void widen(ElemKind kind, const std::byte* data, int64_t first, int64_t count, int64_t stride, D* out);

// Writes count values, each rounded once.
//   float kinds: to nearest even. Out of range becomes infinity, NaN where the kind has none, and the largest value
//     where it has no NaN either (Float4E2M1). With saturate the 8-bit kinds clamp to their largest finite value.
//   Float8E8M0: rounded as asked; negative values are NaN; zero and what is out of range are NaN or, with saturate,
//     the nearest end of the range.
//   integer kinds: integers wrap. Floats are truncated (NaN is 0) and saturate in kinds of 32 and 64 bits; narrower
//     kinds wrap, from the 32-bit value.
//   Bool: not zero.
template <class D>
void narrow(ElemKind kind, const D* values, int64_t count, std::byte* data, int64_t first, bool saturate = false,
            ScaleRounding rounding = ScaleRounding::Nearest);

template <class D>
std::vector<D> widened(const TensorRef& t) {
  std::vector<D> out(static_cast<size_t>(t.type->elements()));
  widen(t.type->kind(), t.data, 0, t.type->elements(), 1, out.data());
  return out;
}

template <class D>
void store(const TensorRef& t, const std::vector<D>& values) {
  narrow(t.type->kind(), values.data(), t.type->elements(), t.data, 0);
}

// Calls f with a value of the domain's C++ type, to choose an instance of a template.
template <class F>
decltype(auto) inDomain(Domain domain, F&& f) {
  switch (domain) {
    case Domain::Float:
      return f(double{});
    case Domain::Signed:
      return f(int64_t{});
    case Domain::Unsigned:
      break;
  }
  return f(uint64_t{});
}

// Single elements of the float kinds, as bits.
double floatFromBits(ElemKind kind, uint64_t bits);
uint64_t floatToBits(ElemKind kind, double value, bool saturate = false,
                     ScaleRounding rounding = ScaleRounding::Nearest);

}  // namespace aglow
