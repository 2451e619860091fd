// Sizes that a model leaves open, by the names it has for them.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/importer.h"

namespace aglow::cli {

// The names of sizes that inputs leave open, in their order, each once.
std::vector<std::string> openDims(const onnx::Graph& graph);

// BadBinding, with the names there are, where `--dim NAME=…` names another.
Status checkDims(const onnx::Graph& graph, const std::vector<std::string>& words);

// Gives 1 to all sizes that neither options nor values decide, and tells which: "batch", "x[2]".
std::vector<std::string> takeOnes(const onnx::Graph& graph, onnx::ImportOptions& import);

}  // namespace aglow::cli
