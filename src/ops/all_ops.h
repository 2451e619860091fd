// All records, in one order that gives each operator its number.
#pragma once

#include <span>

#include "ops/op_def.h"

namespace aglow {

std::span<const OpDef* const> allOps();

// Checks number, presence and kinds of operands and the attributes' words, then asks the record's type rule.
Result<std::vector<Type>> inferTypes(const Attrs& attrs, std::span<const Type* const> in);

}  // namespace aglow
