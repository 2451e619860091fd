// Rows of results along their first axis, as predicates for single rows speak of them: what each needs of the operands.
#pragma once

#include <span>

#include "ops/op.h"

namespace aglow {

// Whether row i of the first result needs of an operand no more than its row i, by what the operator does along the
// first axis: as many rows alone say nothing.
bool readsByRow(const Attrs& attrs, std::span<const Type* const> in, const Type& out, size_t operand);

}  // namespace aglow
