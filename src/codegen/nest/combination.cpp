#include "codegen/nest/combination.h"

#include <bit>

#include "codegen/nest/kinds.h"
#include "reference/arithmetic.h"

namespace aglow::nest {

// The end of the range, which for floats is infinite.
static uint64_t extremumStart(ElemKind element, ElemKind kind, bool max) {
  if (isFloat(kind)) return std::bit_cast<uint64_t>(max ? lowestOf<double>(element) : highestOf<double>(element));
  if (isSigned(kind)) return static_cast<uint64_t>(max ? lowestOf<int64_t>(element) : highestOf<int64_t>(element));
  return max ? lowestOf<uint64_t>(element) : highestOf<uint64_t>(element);
}

Combination combinationOf(std::string_view word, ElemKind element) {
  ElemKind kind = computedKind(element);
  if (kind == ElemKind::Bool) kind = ElemKind::UInt32;
  const bool max = word == "max";
  if (max || word == "min") return {max ? Scalar::Max : Scalar::Min, kind, extremumStart(element, kind, max)};
  kind = isFloat(kind) ? ElemKind::Float64 : isSigned(kind) ? ElemKind::Int64 : ElemKind::UInt64;
  const bool product = word == "prod" || word == "mul";
  return {product ? Scalar::Mul : Scalar::Add, kind,
          isFloat(kind) ? std::bit_cast<uint64_t>(product ? 1.0 : 0.0) : uint64_t{product}};
}

}  // namespace aglow::nest
