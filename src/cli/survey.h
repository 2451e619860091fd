// Which operators a model uses, and which of its nodes are not supported.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/model_options.h"

namespace aglow::cli {

// One row of the operator table. Versions are those of the scope the node stands in.
struct OpUse {
  int64_t version = 0;
  int64_t count = 0;
  bool supported = false;
};
using OpUses = std::map<std::string, OpUse>;

class Survey {
public:
  explicit Survey(const onnx::Model& model);

  OpUses ops;
  int64_t nodes = 0;
  int64_t parameters = 0;

private:
  void visit(const onnx::Graph& graph, const onnx::Opsets& opsets);
  void visit(const onnx::Node& node, const onnx::Opsets& opsets);

  const onnx::Model& model_;
};

// A row for each operator, then the nodes that are refused.
std::string supportText(const Survey& survey, const std::vector<Error>& refused);

// What importing and lowering the model for its backend refuses, node by node. A model that runs in parts, because
// shapes depend on values, is supported. Diagnostics where it is faulty; but where sizes are assumed, what they do not
// fit is no fault of the model.
Diagnosed<std::vector<Error>> refusedNodes(const onnx::Model& model, const ParsedOptions& options, bool assumed);

}  // namespace aglow::cli
