// How gradients pass single operators: the formula of an elementwise one, or a rule, one for each record that promises
// one, as opgen's table names them. A missing rule does not link.
#pragma once

#include <vector>

#include "graph/builder.h"

namespace aglow::grad {

// What a rule works on: a node, the gradients of its results, and a builder that stands where gradients are computed.
struct Backward {
  Builder& b;
  Node& node;
  std::vector<Value> dy;     // of each result; empty where nothing comes back
  std::vector<bool> wanted;  // the operands whose gradient is asked for

  Value in(int i) const { return node.input(i); }
  bool wants(int i) const { return i < static_cast<int>(wanted.size()) && wanted[static_cast<size_t>(i)]; }
};

// One gradient for each operand, of its type; empty ones are zero.
using GradRule = std::vector<Value>(const Backward& s);

// The rule of an operator that promises one, or null.
GradRule* gradRule(Op op);

// Of every elementwise operator.
GradRule byFormula;

#define AGLOW_ROW(name, function) GradRule function;
#include "grad/grad_table.inc"
#undef AGLOW_ROW

}  // namespace aglow::grad
