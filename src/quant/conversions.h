// Where values change between floats and integers: the choice that converts the fewest bytes.
#pragma once

#include "quant/islands.h"

namespace aglow::quant {

// Of the operators that may take part in islands, those that leave less to convert when they stay in floats.
std::unordered_set<const Node*> cheaperInFloats(const Function& function, const Islands& possible);

}  // namespace aglow::quant
