// Faults that show without types, in words and with their place in scope: what import reports as it goes, and what a
// walk over the parts that it could not reach adds.
#pragma once

#include <optional>
#include <string>

#include "import/onnx/proto.h"
#include "support/diagnostics.h"

namespace aglow::onnx {

// "node 'conv1' (Conv)"; a node without a name is called by its first output.
std::string placeOf(const Node& node);
// "function 'local::F'"
std::string placeOf(const Function& function);
// "node 'y' (If): else_branch", for one of the node's graphs
std::string placeWithin(const Node& node, const Graph& graph);

// Why the node's operator cannot be imported; nothing when it can.
std::optional<Error> operatorFault(const Node& node, const Opsets& opsets, const Model& model);
Error undefinedValue(const std::string& name);
Error uncomputedOutput(const std::string& name);

// Every unknown operator, undefined value and malformed initializer of the model, nested graphs and the functions it
// calls included.
void reportFaultsWithoutTypes(const Model& model, Diagnostics& diagnostics);

}  // namespace aglow::onnx
