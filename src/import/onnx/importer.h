// From an ONNX model to a graph: operators become nodes, sizes and shape arithmetic are settled on the way.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "graph/evaluator.h"
#include "graph/interface.h"
#include "graph/model_value.h"
#include "graph/module.h"
#include "import/onnx/departures.h"
#include "import/onnx/proto.h"
#include "support/diagnostics.h"

namespace aglow::onnx {

// What a user can do about E303.
inline constexpr std::string_view kDynamicHint =
    "give the value when compiling (--value NAME=FILE.npy), or use `aglow run` or the runtime, which compile such a "
    "model in parts";

struct ImportOptions {
  std::map<std::string, std::vector<int64_t>> shapes;  // whole shapes of inputs
  std::map<std::string, int64_t> dims;                 // sizes of symbolic dimensions
  // What is known of inputs: shapes are taken from here, and values where a shape depends on them.
  std::map<std::string, ModelValue> given;
  // Values of the model's own graph, initializers or computed from them, that become state: what is trained. One whose
  // value decides a shape or an attribute stays a constant all the same.
  std::set<std::string> variables = {};
  Evaluator* evaluator = nullptr;
  Tolerance tolerance = {};
  bool followLinks = false;  // to weights that lie beside the model
};

struct ImportedModel {
  std::unique_ptr<Module> module;  // one function, "main"
  Interface interface;
};

Diagnosed<ImportedModel> importModel(const Model& model, const ImportOptions& options);

}  // namespace aglow::onnx
