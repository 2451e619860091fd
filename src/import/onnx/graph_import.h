// The state of one import: scopes of names, the function that grows, and the faults met so far.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "import/onnx/importer.h"
#include "import/onnx/op_import.h"

namespace aglow::onnx {

class GraphImport {
public:
  // Inputs in `frozen` become constants with their given values.
  GraphImport(const Model& model, const ImportOptions& options, const std::set<std::string>& frozen);

  // Throws NeedsValue when a shape depends on given inputs that are not frozen yet.
  Diagnosed<ImportedModel> run();

  // For OpImport.
  Tensor constantOf(Value v);
  std::vector<Imported> importNested(const Graph& graph, const std::vector<Imported>& inputs);
  Result<Tensor> tensorOf(const Attribute& attribute) const;  // a tensor, or a sparse one filled up

private:
  // Names of a graph and of those around it, the opsets in force, and a function's attributes as its caller gave them.
  struct Scope {
    const Scope* outer = nullptr;
    const Opsets* opsets = nullptr;
    std::map<std::string, const Attribute*> attributes;
    const onnx::Function* function = nullptr;  // a function's body: names of the caller are out of sight
    std::unordered_map<std::string, Imported> values;
    std::set<std::string> failed;  // defined by nodes that could not be imported
  };

  class Entered;

  void importInputs(const Graph& graph, Scope& scope);
  void importInitializers(const Graph& graph, Scope& scope);
  void importNodes(const std::vector<Node>& nodes, Scope& scope);
  void importNode(const Node& node, Scope& scope);
  void importOutputs(const Graph& graph, Scope& scope);
  std::vector<Imported> callFunction(const onnx::Function& function, const Node& node,
                                     const std::vector<Imported>& operands);
  const onnx::Function* findFunction(const Node& node) const;

  const Imported* lookup(const Scope& scope, const std::string& name) const;
  bool isFailed(const Scope& scope, const std::string& name) const;
  void define(Scope& scope, const std::string& name, Imported value);
  Node resolved(const Node& node, const Scope& scope) const;
  void foldSince(aglow::Node* last, std::vector<Imported>& results);
  Port portOf(const std::string& name, const Imported& value);

  void report(Error error) { diagnostics_.add(std::move(error)); }

  const Model& model_;
  const ImportOptions& options_;
  const std::set<std::string>& frozen_;
  ImportedModel result_;
  aglow::Function* function_ = nullptr;
  Builder builder_;
  Diagnostics diagnostics_;
  std::unordered_map<const aglow::Node*, std::string> inputNames_;  // placeholder to the model's input
  std::vector<Scope*> scopes_;                                      // innermost last
  size_t imported_ = 0;
};

// The types of the graph's inputs, from what the model declares and what is given.
struct InputTypes {
  std::map<std::string, Type> types;  // of tensor inputs
  Diagnostics diagnostics;
};
InputTypes resolveInputs(const Graph& graph, const ImportOptions& options);

std::string placeOf(const Node& node);

}  // namespace aglow::onnx
