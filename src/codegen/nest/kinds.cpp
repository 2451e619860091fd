#include "codegen/nest/kinds.h"

#include <algorithm>
#include <utility>

#include "codegen/nest/nest.h"
#include "support/check.h"

namespace aglow::nest {

namespace {

using enum ElemKind;

bool isWhole(ElemKind kind) { return isInteger(kind) && elemBytes(kind) >= 4; }
bool isNarrowFloat(ElemKind kind) { return isFloat(kind) && !isReal(kind); }

ElemKind integerOf(bool wide, bool hasSign) {
  if (wide) return hasSign ? Int64 : UInt64;
  return hasSign ? Int32 : UInt32;
}

}  // namespace

bool isReal(ElemKind kind) { return kind == Float32 || kind == Float64; }

bool isComputed(ElemKind kind) { return isReal(kind) || isWhole(kind) || kind == Bool; }

ElemKind computedKind(ElemKind kind) {
  kind = storageKind(kind);
  if (isComputed(kind)) return kind;
  return isFloat(kind) ? Float32 : integerOf(false, isSigned(kind));
}

ElemKind commonKind(std::span<const ElemKind> kinds) {
  bool real = false, wideReal = false, hasSign = false, wide = false, manyBits = false;
  for (const ElemKind kind : kinds) {
    const ElemKind computed = computedKind(kind);
    real |= isReal(computed);
    wideReal |= computed == Float64;
    hasSign |= isSigned(computed);
    wide |= isWhole(computed) && elemBytes(computed) == 8;
    // 32 bits of an integer do not fit into an f32.
    manyBits |= !isFloat(kind) && elemBytes(kind) >= 4;
  }
  if (real) return wideReal || manyBits ? Float64 : Float32;
  return integerOf(wide, hasSign);
}

FloatFormat narrowFormat(ElemKind kind) {
  constexpr std::pair<ElemKind, FloatFormat> kFormats[] = {
      {Float16, kFloat16Format}, {BFloat16, kBFloat16Format},       {Float8E4M3FN, kE4M3FNFormat},
      {Float8E5M2, kE5M2Format}, {Float8E4M3FNUZ, kE4M3FNUZFormat}, {Float8E5M2FNUZ, kE5M2FNUZFormat},
      {Float4E2M1, kE2M1Format},
  };
  const auto* row =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto& r) { return r.first == kind; });
  AGLOW_CHECK(row != std::end(kFormats), "not a narrow float");
  return row->second;
}

bool converts(ElemKind from, ElemKind to) {
  if (from == to || isQuantized(from) || isQuantized(to)) return false;
  if (from == Bool || to == Bool) return isComputed(from) && isComputed(to);
  if (!isComputed(from)) return to == computedKind(from);
  if (isReal(from)) return isFloat(to) || isWhole(to);
  return isReal(to) || isInteger(to);
}

std::vector<ElemKind> conversion(ElemKind from, ElemKind to) {
  from = storageKind(from);
  to = storageKind(to);
  std::vector<ElemKind> steps;
  ElemKind at = from;
  const auto step = [&](ElemKind next) {
    if (at == next && isComputed(at)) return;
    steps.push_back(next);
    at = next;
  };
  step(computedKind(from));
  if (isComputed(to)) {
    step(to);
    return steps;
  }
  if (at == Bool)
    step(computedKind(to));
  else if (isNarrowFloat(to) && isWhole(at))
    step(elemInfo(from).bits <= 16 ? Float32 : Float64);  // exact, so that rounding happens once
  else if (isInteger(to) && isReal(at))
    step(Int32);  // kinds of less than 32 bits wrap, from the 32-bit value
  step(to);
  return steps;
}

}  // namespace aglow::nest
