// How elements are combined into one, by reductions, scans and scattered updates.
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/formula.h"
#include "tensor/elem_kind.h"

namespace aglow::nest {

struct Combination {
  Scalar combine = Scalar::Add;
  ElemKind kind = ElemKind::Float64;  // in which it is taken
  uint64_t start = 0;                 // what changes nothing, as in Expr::number
};

// By the word of an operator's attribute (sum, mean, add, prod, mul, max, min) for elements of a kind. Sums and
// products are taken in 64 bits: a mean sees what would wrap or overflow, and long rows lose nothing.
Combination combinationOf(std::string_view word, ElemKind element);

}  // namespace aglow::nest
