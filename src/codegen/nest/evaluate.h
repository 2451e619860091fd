// Nests run as they stand, point after point: what every printer has to agree with.
#pragma once

#include <cstddef>
#include <span>

#include "codegen/nest/nest.h"

namespace aglow::nest {

// `operands` has the address of each operand. `given`, of an epilogue, has the anchor's results in the kind of
// Expr::Given, in the order of the nest's axes.
void evaluate(const Nest& nest, std::span<std::byte* const> operands, const std::byte* given = nullptr);

}  // namespace aglow::nest
