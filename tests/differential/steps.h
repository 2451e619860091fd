// Formulas of elementwise operators, evaluated step by step with each step rounded, and moved, as a machine might.
#pragma once

#include <vector>

#include "graph/node.h"
#include "random_graph.h"

namespace aglow::differential {

// Whether a step of a formula gives the same bits on every machine, because nothing is rounded.
bool isExact(Scalar step);

// The result of an elementwise node on floats; rounding steps are moved by up to `units` in the last place of f32
// (of f64, where the result is f64), the kind in which backends compute.
Tensor movedFormula(Random& random, const Node& node, const std::vector<Tensor>& operands, double units);

}  // namespace aglow::differential
