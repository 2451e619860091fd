// Products and convolutions whose weights are too large for one piece of memory, done in parts.
#pragma once

#include <cstdint>

#include "graph/evaluator.h"
#include "graph/module.h"

namespace aglow {

// Constant weights of matrix products, transposed or not, and convolutions with more than so many bytes are cut along
// the axis of their results, and what parts of them give is put side by side: every element of a result is computed as
// before, also where the order of its sums depends on how many there are. Reports whether anything changed.
Result<bool> cutWeights(Function& function, int64_t bytes, Evaluator& evaluator);

}  // namespace aglow
