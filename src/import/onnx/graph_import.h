// The state of one import: scopes of names, the function that grows, and the faults met so far.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "import/onnx/faults.h"
#include "import/onnx/importer.h"
#include "import/onnx/inputs.h"
#include "import/onnx/op_import.h"
#include "import/onnx/parts.h"

namespace aglow::onnx {

class GraphImport {
public:
  GraphImport(const Model& model, Evaluator& evaluator, const Tolerance& tolerance);

  // The whole model. Inputs in `frozen` become constants with their given values, and variables in it stay constants.
  // Throws NeedsValue when a shape depends on given inputs, or on variables, that are not frozen yet.
  Diagnosed<ImportedModel> importWhole(const ImportOptions& options, const std::set<std::string>& frozen);
  Diagnosed<ImportedPart> importPart(const PartRequest& request);
  Diagnosed<std::vector<ModelValue>> evaluateNode(const PartRequest& request);

  // For OpImport.
  Tensor constantOf(Value v);
  // The place is where errors within the nested graph are reported.
  std::vector<Imported> importNested(const Graph& graph, const std::vector<Imported>& inputs, std::string place);
  // Nothing where that fails, or needs a value: then all is as before.
  std::optional<std::vector<Imported>> tryNested(const Graph& graph, std::string place);
  Result<Tensor> tensorOf(const Attribute& attribute) const;  // a tensor, or a sparse one filled up
  bool mayCut() const { return mayCut_; }
  int64_t channelBlock();
  // A node that departs from the standard: fails where that is not accepted.
  void depart(const Node& node, Departure departure) const;

private:
  // Names of a graph and of those around it, the opsets in force, and a function's attributes as its caller gave them.
  struct Scope {
    const Scope* outer = nullptr;
    const Opsets* opsets = nullptr;
    std::string place;  // within the scope around it: a node, and which of its graphs
    std::map<std::string, const Attribute*> attributes;
    const onnx::Function* function = nullptr;  // a function's body: names of the caller are out of sight
    std::unordered_map<std::string, Imported> values;
    std::set<std::string> failed;  // defined by nodes that could not be imported
    std::set<std::string> onHost;  // values that are never imported: nodes that read them are left to the runtime
  };

  class Entered;

  void checkOpsets(const Opsets& opsets);
  void importInputs(const Graph& graph, const ImportOptions& options, const std::set<std::string>& frozen,
                    Scope& scope);
  void importKnown(const PartRequest& request, Scope& scope);
  void importInitializers(const Graph& graph, Scope& scope, const std::set<std::string>* wanted = nullptr);
  void importNodes(const std::vector<Node>& nodes, Scope& scope);
  void importNode(const Node& node, Scope& scope);
  void importOutputs(const Graph& graph, Scope& scope);
  void importPartOutputs(const PartRequest& request, Scope& scope, ImportedPart& part);
  bool checkOutput(const ValueInfo& info, const Imported& value);
  void addOutput(const std::string& name, const Imported& value);
  void defer(const Node& node, const NeedsValue& needs, const std::vector<Imported>& operands, AtRunTime atRunTime);
  bool waits(const Node& node) const;
  std::vector<Imported> callFunction(const onnx::Function& function, const Node& node,
                                     const std::vector<Imported>& operands);
  const Imported* lookup(const Scope& scope, const std::string& name) const;
  bool isFailed(const Scope& scope, const std::string& name) const;
  bool isOnHost(const Scope& scope, const std::string& name) const;
  // Leaves the node at hand to the runtime, or fails where there is none.
  [[noreturn]] void leaveToHost() const;
  void define(Scope& scope, const std::string& name, Imported value);
  // What is constant as state under this name, anything else as it is.
  Value asVariable(const std::string& name, Value value);
  Node resolved(const Node& node, const Scope& scope) const;
  void foldSince(aglow::Node* last, std::vector<Imported>& results);
  Port portOf(const std::string& name, const Imported& value);

  Error placed(Error error) const;  // with the place of the innermost scope
  void report(Error error) { diagnostics_.add(placed(std::move(error))); }

  const Model& model_;
  Evaluator& evaluator_;
  const Tolerance& tolerance_;
  bool mayCut_ = false;
  // Whether a shape may depend on the value of an input: its value is at hand, for the next try.
  std::function<bool(const std::string&)> isAtHand_ = [](const std::string&) { return false; };
  size_t current_ = 0;         // position of the node of a part
  bool inOneFunction_ = true;  // whether all nodes of the model so far are in the function
  std::vector<Deferred> deferred_;
  std::set<std::string> deferredNames_;  // values that deferred nodes compute
  std::set<std::string> freeze_;
  ImportedModel result_;
  aglow::Function* function_ = nullptr;
  Builder builder_;
  Diagnostics diagnostics_;
  std::set<std::string> variables_;                                 // constants that are state
  std::unordered_map<const aglow::Node*, std::string> inputNames_;  // placeholder to the model's input or variable
  std::vector<Scope*> scopes_;                                      // innermost last
  size_t imported_ = 0;
  int64_t channelBlock_ = 0;  // 0: not asked for yet
};

// Makes a scope the innermost one for as long as it lives, also when an exception ends it.
class GraphImport::Entered {
public:
  static constexpr size_t kMaxDepth = 100;  // of nested graphs and function calls

  Entered(GraphImport& import, Scope& scope) : scopes_(import.scopes_) {
    if (scopes_.size() >= kMaxDepth) fail(Code::LimitReached, "graphs and functions are nested too deeply");
    scopes_.push_back(&scope);
  }
  ~Entered() { scopes_.pop_back(); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

private:
  std::vector<Scope*>& scopes_;
};

}  // namespace aglow::onnx
