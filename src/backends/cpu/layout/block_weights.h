// Weights that are integers of a few bits with scales: products of few rows read them as they are.
#pragma once

#include "graph/node.h"

namespace aglow {

// Whether a DequantizeLinear stays whole until its products are packed: its operands are known when compiling, only
// products of few rows read it, and its blocks can be kept.
bool isBlockWeights(const Node& node);

}  // namespace aglow
