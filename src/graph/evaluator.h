// Computes a node whose operands are known. Import and the optimizer fold with it; the compile stage provides it,
// because composites must first be lowered.
#pragma once

#include <span>
#include <vector>

#include "graph/node.h"

namespace aglow {

class Evaluator {
public:
  virtual ~Evaluator() = default;
  // The node's results; an absent operand is an empty Tensor.
  virtual Result<std::vector<Tensor>> evaluate(const Node& node, std::span<const Tensor> inputs) = 0;
};

}  // namespace aglow
