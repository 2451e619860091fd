// Where a number that is none comes from.
#pragma once

#include <string>

#include "compile/evaluate.h"

namespace aglow {

bool isFinite(const Tensor& tensor);

// Computes a function node by node, and follows what is NaN or infinite back to where it began: "node 'log' (Log) made
// the first …". `output` is looked at first, then all that the function saves. Empty where all is finite.
Result<std::string> firstNotFinite(const Function& function, const std::string& output, const NamedTensors& bindings,
                                   const NamedTensors& state);

}  // namespace aglow
