#include "import/onnx/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "import/onnx/op_import.h"
#include "import/onnx/parts.h"
#include "import/onnx/tensor_check.h"
#include "import/onnx/tensor_data.h"
#include "support/quote.h"

namespace aglow::onnx {

namespace {

std::string qualified(const std::string& domain, const std::string& name) {
  return domain.empty() ? name : domain + "::" + name;
}

class Survey {
public:
  Survey(const Model& model, Diagnostics& diagnostics) : model_(model), diagnostics_(diagnostics) {}

  void run() {
    visit(model_.graph, Scope{.opsets = &model_.opsets});
    // Functions found on the way are appended.
    for (size_t i = 0; i < called_.size(); ++i) {
      const Function& function = *called_[i];
      Scope scope{.opsets = &function.opsets, .place = placeOf(function)};
      scope.names.insert(function.inputs.begin(), function.inputs.end());
      visit(function.nodes, scope);
    }
  }

private:
  struct Scope {
    const Scope* outer = nullptr;
    const Opsets* opsets = nullptr;
    std::string place = {};
    std::unordered_set<std::string> names = {};

    bool knows(const std::string& name) const {
      return name.empty() || names.contains(name) || (outer != nullptr && outer->knows(name));
    }
  };

  void visit(const Graph& graph, Scope scope) {
    for (const ValueInfo& info : graph.inputs) scope.names.insert(info.name);
    const auto initializer = [&](const std::string& name, const auto& tensor) {
      scope.names.insert(name);
      if (!tensor.ok()) report(tensor.error(), scope);
    };
    for (const TensorProto& tensor : graph.initializers) initializer(tensor.name, checkTensor(tensor, model_));
    for (const SparseTensorProto& tensor : graph.sparseInitializers)
      initializer(tensor.values.name, toTensor(tensor, model_));
    visit(graph.nodes, scope);
  }

  void visit(const std::vector<Node>& nodes, Scope& scope) {
    for (const Node& node : nodes) {
      for (const std::string& name : node.inputs)
        if (!scope.knows(name)) report(undefinedValue(name).at(placeOf(node)), scope);
      if (auto fault = operatorFault(node, *scope.opsets, model_)) report(std::move(*fault).at(placeOf(node)), scope);
      if (const Function* function = calledFunction(model_, node); function != nullptr && seen_.insert(function).second)
        called_.push_back(function);
      for (const Attribute& attribute : node.attributes) {
        if (attribute.g != nullptr) visitNested(node, *attribute.g, scope);
        for (const Graph& graph : attribute.graphs) visitNested(node, graph, scope);
      }
      scope.names.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  void visitNested(const Node& node, const Graph& graph, const Scope& scope) {
    const std::string place = placeWithin(node, graph);
    visit(graph, Scope{.outer = &scope,
                       .opsets = scope.opsets,
                       .place = scope.place.empty() ? place : scope.place + ": " + place});
  }

  void report(Error error, const Scope& scope) {
    diagnostics_.add(scope.place.empty() ? std::move(error) : std::move(error).at(scope.place));
  }

  const Model& model_;
  Diagnostics& diagnostics_;
  std::vector<const Function*> called_;
  std::unordered_set<const Function*> seen_;
};

}  // namespace

std::string placeOf(const Node& node) {
  std::string name = node.name;
  if (name.empty() && !node.outputs.empty()) name = node.outputs.front();
  return fmt::format("node {} ({})", quoted(name), shown(qualified(node.domain, node.opType)));
}

std::string placeOf(const Function& function) {
  return fmt::format("function {}", quoted(qualified(function.domain, function.name)));
}

std::string placeWithin(const Node& node, const Graph& graph) {
  std::string name = "graph";
  for (const Attribute& attribute : node.attributes)
    if (attribute.g.get() == &graph) name = shown(attribute.name);
  return placeOf(node) + ": " + name;
}

std::optional<Error> operatorFault(const Node& node, const Opsets& opsets, const Model& model) {
  if (calledFunction(model, node) != nullptr) return std::nullopt;
  const auto opset = opsets.find(node.domain);
  const int64_t version = opset == opsets.end() ? 0 : opset->second;
  const OpRow* row = findRow(node.domain, node.opType, version);
  if (row != nullptr && row->handler != nullptr && version != 0) return std::nullopt;
  if (version == 0 && node.domain.empty())
    return Error{.code = Code::BadGraph, .message = "the model does not say which opset it is written for"};
  if (version == 0)
    return Error{.code = Code::UnsupportedOp,
                 .message = "its domain is not imported by the model",
                 .where = {},
                 .hint = "name the domain and its version in the model's opset_import"};
  if (row != nullptr)
    return Error{.code = Code::UnsupportedOp,
                 .message = fmt::format("the operator is not supported: {}", row->refusal)};
  return Error{.code = Code::UnsupportedOp,
               .message = fmt::format("the operator is not supported at version {}", version),
               .where = {},
               .hint = alternativeTo(node.domain, node.opType)};
}

Error uncomputedOutput(const std::string& name) {
  return {.code = Code::BadGraph, .message = fmt::format("no node computes the graph's output '{}'", name)};
}

Error undefinedValue(const std::string& name) {
  return {.code = Code::BadGraph,
          .message = fmt::format("input {} is not defined before its use", quoted(name)),
          .where = {},
          .hint = "the nodes form a cycle, are not in order, or the name is misspelt"};
}

void reportFaultsWithoutTypes(const Model& model, Diagnostics& diagnostics) { Survey(model, diagnostics).run(); }

}  // namespace aglow::onnx
