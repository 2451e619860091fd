// Whether a module keeps the rules of the graph: types, order, names and the lists of uses.
#pragma once

#include <span>
#include <vector>

#include "graph/module.h"

namespace aglow {

// BadVerify, naming function and node; in time linear in the module's size.
Status verify(const Module& module);

// The types of a use of an operator, and all rules that operands, attributes and predicate must keep by themselves;
// BadNode otherwise. Unlike inferTypes it knows Save.
Result<std::vector<Type>> checkedTypes(const Attrs& attrs, std::span<const Value> inputs, Value predicate);

}  // namespace aglow
