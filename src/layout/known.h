// Values known when compiling, also where folding left a change of their shape or order to be done.
#pragma once

#include "graph/evaluator.h"
#include "graph/node.h"

namespace aglow {

// Whether knownValue gives a tensor, without the work.
bool isKnown(Value v);
// Constants and Splats, behind any Transposes and Reshapes; an empty tensor for everything else.
Tensor knownValue(Value v, Evaluator& evaluator);

}  // namespace aglow
