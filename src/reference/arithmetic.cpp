// The ends of the kinds' ranges.
#include "reference/arithmetic.h"

namespace aglow {

namespace {

// What is left of a value once it is stored.
double stored(ElemKind kind, double value, bool saturate) {
  return floatFromBits(kind, floatToBits(kind, value, saturate));
}

double highestFloat(ElemKind kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double end = stored(kind, kInfinity, false);
  return std::isinf(end) ? end : stored(kind, kInfinity, true);
}

// Scales have no sign: what zero saturates to is the lowest.
double lowestFloat(ElemKind kind) { return kind == ElemKind::Float8E8M0 ? stored(kind, 0, true) : -highestFloat(kind); }

bool hasSign(ElemKind kind) { return isSigned(kind) || (isQuantized(kind) && kind != ElemKind::QUInt8); }

}  // namespace

template <class D>
D highestOf(ElemKind kind) {
  if (isFloat(kind)) return static_cast<D>(highestFloat(kind));
  if (kind == ElemKind::Bool) return 1;
  const int bits = elemInfo(kind).bits - (hasSign(kind) ? 1 : 0);
  return static_cast<D>(~uint64_t{0} >> (64 - bits));
}

template <class D>
D lowestOf(ElemKind kind) {
  if (isFloat(kind)) return static_cast<D>(lowestFloat(kind));
  if (!hasSign(kind)) return 0;
  return static_cast<D>(-1 - highestOf<int64_t>(kind));
}

template double highestOf(ElemKind);
template int64_t highestOf(ElemKind);
template uint64_t highestOf(ElemKind);
template double lowestOf(ElemKind);
template int64_t lowestOf(ElemKind);
template uint64_t lowestOf(ElemKind);

}  // namespace aglow
