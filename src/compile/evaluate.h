// The graph's meaning, computed node by node with the reference kernels: for folding constants, and as the oracle that
// every optimisation is checked against.
#pragma once

#include <map>
#include <string>

#include "graph/evaluator.h"
#include "graph/module.h"

namespace aglow {

// Runs core nodes with their reference kernels, and composites as their lowering.
class ReferenceEvaluator : public Evaluator {
public:
  Result<std::vector<Tensor>> evaluate(const Node& node, std::span<const Tensor> inputs) override;
};

// Values of placeholders by name.
using NamedTensors = std::map<std::string, Tensor, std::less<>>;

// What a function writes into its outputs (in the order of outputsOf), given what it reads. State that `state` does not
// hold yet begins with its initial value; what it becomes is left there. Nodes run in order and regardless of
// predicates.
Result<std::vector<Tensor>> evaluateFunction(const Function& function, const NamedTensors& bindings,
                                             NamedTensors* state = nullptr);

}  // namespace aglow
