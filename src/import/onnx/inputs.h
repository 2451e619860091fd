// The sizes of a model's inputs.
#pragma once

#include <map>
#include <string>

#include "import/onnx/importer.h"

namespace aglow::onnx {

// The types of the graph's inputs, from what the model declares and what is given.
struct InputTypes {
  std::map<std::string, Type> types;     // of tensor inputs
  std::map<std::string, int64_t> sizes;  // of symbolic dimensions
  Diagnostics diagnostics;
};
InputTypes resolveInputs(const Graph& graph, const ImportOptions& options);

}  // namespace aglow::onnx
