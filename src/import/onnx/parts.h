// A model imported in parts: it is cut where a shape depends on a value that only a run can tell.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "import/onnx/importer.h"

namespace aglow::onnx {

// What stands around a part: of a constant the value counts, of others the types.
struct KnownValue {
  ModelValue value;
  bool constant = false;
};
using KnownValues = std::map<std::string, KnownValue>;

// A node that is not in a part.
struct Deferred {
  enum class Why : uint8_t {
    Waits,        // for another deferred node
    NeedsValues,  // shapes after it depend on the values of some operands
    Alone,        // to be run by itself
  };
  size_t node = 0;  // position in the graph
  Why why = Why::Waits;
  std::vector<std::string> values;  // NeedsValues: names
};

// Nodes of a graph (the model's, or one nested in it), with all the values they use that they do not compute.
struct PartRequest {
  const Graph& graph;
  const Opsets& opsets;
  std::span<const size_t> nodes;  // positions in the graph, in order
  const KnownValues& known;       // initializers need not be in there
  Evaluator* evaluator = nullptr;
  const Tolerance& tolerance;
};

// As much of the nodes as can be compiled now. The deferred nodes are left after it.
struct ImportedPart {
  ImportedModel model;                          // its outputs are what deferred nodes and the graph's outputs need
  std::map<std::string, ModelValue> constants;  // such values that are known without a run
  std::vector<Deferred> deferred;
  // When not empty, nothing else is there: these small known values decide shapes, and should be constants.
  std::set<std::string> freeze;
};
Diagnosed<ImportedPart> importPart(const Model& model, const PartRequest& request);

// The results of one node all of whose operands are known, constant or not.
Diagnosed<std::vector<ModelValue>> evaluateNode(const Model& model, const PartRequest& request);

// The names that a node reads, those that its nested graphs take from outside included.
std::vector<std::string> namesRead(const Node& node);
// The names that a nested graph takes from outside.
std::vector<std::string> freeNames(const Graph& graph);
// The function of the model that a node calls, or null.
const Function* calledFunction(const Model& model, const Node& node);
// A function's body as a graph, with the attributes of the call in place.
Graph bodyOf(const Function& function, const Node& call);

}  // namespace aglow::onnx
