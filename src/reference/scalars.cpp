#include "reference/scalars.h"

#include <cmath>

#include "reference/arithmetic.h"
#include "support/check.h"

namespace aglow::reference {

namespace {

// Bits of reals are those of their integers.
template <class D, class F>
D onBits(D a, D b, F f) {
  if constexpr (kReal<D>)
    return static_cast<D>(f(fromReal<int64_t>(a), fromReal<int64_t>(b)));
  else
    return f(a, b);
}

template <class I>
I shiftedLeft(I a, I b, int width) {
  const auto by = static_cast<uint64_t>(b);
  return by >= static_cast<uint64_t>(width) ? I{0} : static_cast<I>(static_cast<uint64_t>(a) << by);
}

template <class I>
I shiftedRight(I a, I b, int width) {
  const auto by = static_cast<uint64_t>(b);
  return by >= static_cast<uint64_t>(width) ? I{0} : static_cast<I>(a >> by);
}

}  // namespace

double attributeValue(const Attrs& attrs, std::string_view name) {
  const int index = attrs.indexOf(name);
  AGLOW_CHECK(index >= 0, "a formula names the attribute '" + std::string(name) + "', which its record lacks");
  const AttrValue& value = attrs.at(index);
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

template <class D>
void applyScalar(Scalar op, const D* x, const D* y, const D* z, D* out, int64_t count, int width) {
  const auto unary = [&](auto f) {
    for (int64_t i = 0; i < count; ++i) out[i] = f(x[i]);
  };
  const auto binary = [&](auto f) {
    for (int64_t i = 0; i < count; ++i) out[i] = f(x[i], y[i]);
  };
  const auto real = [&](double (*f)(double)) { unary([f](D a) { return fromReal<D>(f(static_cast<double>(a))); }); };
  const auto bits = [&](auto f) { binary([f](D a, D b) { return onBits(a, b, f); }); };

  switch (op) {
    case Scalar::Arg:
    case Scalar::Attr:
    case Scalar::Const:
      break;
    case Scalar::Add:
      return binary([](D a, D b) { return sum(a, b); });
    case Scalar::Sub:
      return binary([](D a, D b) { return difference(a, b); });
    case Scalar::Mul:
      return binary([](D a, D b) { return product(a, b); });
    case Scalar::Div:
      return binary([](D a, D b) { return quotient(a, b); });
    case Scalar::Rem:
      return binary([](D a, D b) { return remainder(a, b); });
    case Scalar::Pow:
      return binary([](D a, D b) { return power(a, b); });
    case Scalar::Min:
      return binary([](D a, D b) { return smaller(a, b); });
    case Scalar::Max:
      return binary([](D a, D b) { return larger(a, b); });
    case Scalar::Neg:
      return unary([](D a) {
        if constexpr (kReal<D>)
          return -a;
        else
          return difference(D{0}, a);
      });
    case Scalar::Abs:
      return unary([](D a) {
        if constexpr (kReal<D>)
          return std::fabs(a);
        else
          return a < D{0} ? difference(D{0}, a) : a;
      });
    case Scalar::Floor:
      if constexpr (kReal<D>) return real(std::floor);
      return unary([](D a) { return a; });
    case Scalar::Round:
      if constexpr (kReal<D>) return real(roundHalfEven);
      return unary([](D a) { return a; });
    case Scalar::Sqrt:
      return real(std::sqrt);
    case Scalar::Exp:
      return real(std::exp);
    case Scalar::Expm1:
      return real(std::expm1);
    case Scalar::Log:
      return real(std::log);
    case Scalar::Log1p:
      return real(std::log1p);
    case Scalar::Sin:
      return real(std::sin);
    case Scalar::Cos:
      return real(std::cos);
    case Scalar::Atan:
      return real(std::atan);
    case Scalar::Tanh:
      return real(std::tanh);
    case Scalar::Erf:
      return real(std::erf);
    case Scalar::And:
      return bits([](auto a, auto b) { return a & b; });
    case Scalar::Or:
      return bits([](auto a, auto b) { return a | b; });
    case Scalar::Xor:
      return bits([](auto a, auto b) { return a ^ b; });
    case Scalar::Not:
      return unary([](D a) { return onBits(a, D{0}, [](auto one, auto) { return ~one; }); });
    case Scalar::Shl:
      return bits([width](auto a, auto b) { return shiftedLeft(a, b, width); });
    case Scalar::Shr:
      return bits([width](auto a, auto b) { return shiftedRight(a, b, width); });
    case Scalar::Eq:
      return binary([](D a, D b) { return static_cast<D>(a == b); });
    case Scalar::Lt:
      return binary([](D a, D b) { return static_cast<D>(a < b); });
    case Scalar::IsNan:
      return unary([](D a) { return static_cast<D>(isNan(a)); });
    case Scalar::Select:
      for (int64_t i = 0; i < count; ++i) out[i] = x[i] != D{0} ? y[i] : z[i];
      return;
  }
  AGLOW_CHECK(false, "a term of a formula is not an operation");
}

template void applyScalar(Scalar, const double*, const double*, const double*, double*, int64_t, int);
template void applyScalar(Scalar, const float*, const float*, const float*, float*, int64_t, int);
template void applyScalar(Scalar, const int64_t*, const int64_t*, const int64_t*, int64_t*, int64_t, int);
template void applyScalar(Scalar, const uint64_t*, const uint64_t*, const uint64_t*, uint64_t*, int64_t, int);
template void applyScalar(Scalar, const int32_t*, const int32_t*, const int32_t*, int32_t*, int64_t, int);
template void applyScalar(Scalar, const uint32_t*, const uint32_t*, const uint32_t*, uint32_t*, int64_t, int);

}  // namespace aglow::reference
