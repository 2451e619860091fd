// The values that Gradient names by attributes instead of taking them as inputs.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "import/onnx/proto.h"

namespace aglow::onnx {

inline bool asksForGradient(const Node& node) {
  return node.opType == "Gradient" && node.domain == "ai.onnx.preview.training";
}

// The inputs of a node and, after them, the value that a Gradient differentiates.
std::vector<std::string> operandNames(const Node& node);

// What the Gradient nodes of a graph differentiate by: values that must not become part of others while importing.
std::set<std::string> variablesOf(const Graph& graph);

}  // namespace aglow::onnx
