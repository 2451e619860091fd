// From an ONNX model to a graph: operators become nodes, sizes and shape arithmetic are settled on the way.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/evaluator.h"
#include "graph/interface.h"
#include "graph/module.h"
#include "import/onnx/proto.h"
#include "support/diagnostics.h"

namespace aglow::onnx {

// A given input: tensors, or a sequence of them, or an empty optional. Only the types count, unless a shape depends on
// the values.
struct GivenInput {
  bool none = false;
  bool isSequence = false;
  std::vector<Tensor> tensors;  // one, unless a sequence
};

struct ImportOptions {
  std::map<std::string, std::vector<int64_t>> shapes;  // whole shapes of inputs
  std::map<std::string, int64_t> dims;                 // sizes of symbolic dimensions
  // What is known of inputs: shapes are taken from here, and values where a shape depends on them.
  std::map<std::string, GivenInput> given;
  Evaluator* evaluator = nullptr;
};

struct ImportedModel {
  std::unique_ptr<Module> module;  // one function, "main"
  Interface interface;
};

Diagnosed<ImportedModel> importModel(const Model& model, const ImportOptions& options);

}  // namespace aglow::onnx
