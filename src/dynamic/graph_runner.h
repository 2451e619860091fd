// Runs a graph of a model part by part: compiles what can be compiled for the sizes at hand, runs it, runs the nodes by
// themselves whose results' shapes depend on values, and goes on after them with what is known then.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "dynamic/part.h"
#include "dynamic/strings/string_node.h"
#include "import/onnx/parts.h"
#include "runtime/keyed_cache.h"
#include "support/fork.h"

namespace aglow {

// What the runners of one session share.
struct RunnerContext {
  RunnerContext(onnx::Model from, onnx::Tolerance accepted, CompileOptions compileOptions,
                BackendOptions backendOptions, size_t maxParts)
      : model(std::move(from)),
        tolerance(std::move(accepted)),
        compile(std::move(compileOptions)),
        backend(std::move(backendOptions)),
        parts(maxParts) {}

  const onnx::Model model;
  const onnx::Tolerance tolerance;
  const CompileOptions compile;
  const BackendOptions backend;
  std::function<void(const Compilation&)> compiled;  // called with every part that was compiled; may be empty
  const std::shared_ptr<PartBytes> bytes = std::make_shared<PartBytes>();
  KeyedCache<Part> parts;
};

struct PendingNodes {
  size_t number = 0;  // names it in keys
  std::vector<size_t> nodes;
  std::set<std::string> reads;   // what the nodes and the graph's outputs may take from outside
  std::set<std::string> frozen;  // values that shapes depend on; grows
};

class GraphRunner {
public:
  // The graph belongs to the context's model, or to the owner.
  GraphRunner(RunnerContext& context, const onnx::Graph& graph, const onnx::Opsets& opsets,
              std::shared_ptr<const onnx::Graph> owner = nullptr, int depth = 0);
  ~GraphRunner();

  const onnx::Graph& graph() const { return graph_; }
  // Values of the graph's inputs, and of names that it takes from outside. Gives the graph's outputs.
  Diagnosed<std::vector<ModelValue>> run(onnx::KnownValues values);
  // Compiles the first part for values of such types.
  Diagnosed<std::shared_ptr<Part>> prepare(const onnx::KnownValues& values);
  // The network that alone gives the graph's outputs for values of such types, whatever the values are; null where
  // there is none.
  Diagnosed<std::shared_ptr<Network>> whole(const onnx::KnownValues& values);

private:
  using Values = onnx::KnownValues;

  Diagnosed<std::shared_ptr<Part>> partFor(PendingNodes& pending, const Values& values);
  Diagnosed<std::shared_ptr<Part>> makePart(const PendingNodes& pending, const std::set<std::string>& frozen,
                                            const Values& values);
  std::string keyOf(const PendingNodes& pending, const std::set<std::string>& frozen, const Values& values) const;
  PendingNodes* pendingOf(std::vector<size_t> nodes, std::set<std::string> frozen);
  Status runPart(Part& part, Values& values) const;

  // Control flow and calls, each over runners of nested graphs.
  Diagnosed<std::vector<ModelValue>> runAlone(size_t index, const Values& values);
  Diagnosed<std::vector<ModelValue>> runBranch(const onnx::Node& node, const Values& values);
  Diagnosed<std::vector<ModelValue>> runLoop(const onnx::Node& node, const Values& values);
  Diagnosed<std::vector<ModelValue>> runScan(const onnx::Node& node, const Values& values);
  Diagnosed<std::vector<ModelValue>> runSequenceMap(const onnx::Node& node, const Values& values);
  Diagnosed<std::vector<ModelValue>> runFunction(const onnx::Function& function, const onnx::Node& call,
                                                 const Values& values);
  // Nodes that take or give strings or maps.
  Diagnosed<std::vector<ModelValue>> runOnHost(const onnx::Node& node, const std::vector<ModelValue>& operands);
  Diagnosed<std::vector<ModelValue>> runNumbered(const onnx::Node& node, const strings::NumberedNode& numbered,
                                                 const std::vector<ModelValue>& operands);
  GraphRunner& nested(const onnx::Graph& graph);
  // The values that a nested graph takes from here.
  Values captured(const onnx::Graph& graph, const Values& values);
  // A value by name, initializers included; null when there is none (yet).
  const onnx::KnownValue* find(const std::string& name, const Values& values);
  ModelValue operand(const onnx::Node& node, size_t index, const Values& values);

  RunnerContext& context_;
  const onnx::Graph& graph_;
  const onnx::Opsets& opsets_;
  std::shared_ptr<const onnx::Graph> owner_;
  int depth_;
  size_t number_;           // of the runner, names it in keys
  std::vector<bool> live_;  // by node: whether an output of the graph depends on it
  std::set<std::string> initializerNames_;
  WholeMutex mutex_;     // of what follows
  Values initializers_;  // those that were asked for
  std::deque<std::unique_ptr<PendingNodes>> pending_;
  std::map<const void*, std::unique_ptr<GraphRunner>> nested_;
  // By node, and whether it takes strings; null for nodes that have no strings in their attributes.
  std::map<std::pair<const onnx::Node*, bool>, std::unique_ptr<const strings::NumberedNode>> numbered_;
};

}  // namespace aglow
