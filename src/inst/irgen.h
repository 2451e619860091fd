// From a function's nodes to instructions.
#pragma once

#include <span>

#include "graph/module.h"
#include "inst/program.h"

namespace aglow {

// One instruction per core or elementwise node, in the order given (all nodes of the function, each after its
// operands); views become tensorviews, a Save a copy into its placeholder. A composite that is left is an internal
// error.
Result<Program> generate(const Function& function, std::span<const Node* const> order);
// In the function's own order.
Result<Program> generate(const Function& function);

}  // namespace aglow
