// What importing a part takes besides importing nodes: the values around it, the nodes it leaves, the outputs it owes.
#include "import/onnx/parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/gradient_names.h"
#include "import/onnx/graph_import.h"

namespace aglow::onnx {

namespace {

constexpr int64_t kSmallValue = 8;  // elements: of a known value that is made constant rather than cutting the model

// Adds the names that a graph takes from outside.
void addFreeNames(const Graph& graph, std::vector<std::string>& names);

void addNamesRead(const Node& node, std::vector<std::string>& names) {
  for (std::string& name : operandNames(node))
    if (!name.empty()) names.push_back(std::move(name));
  for (const Attribute& attribute : node.attributes) {
    if (attribute.g) addFreeNames(*attribute.g, names);
    for (const Graph& graph : attribute.graphs) addFreeNames(graph, names);
  }
}

void addFreeNames(const Graph& graph, std::vector<std::string>& names) {
  std::set<std::string> own;
  for (const ValueInfo& info : graph.inputs) own.insert(info.name);
  for (const TensorProto& t : graph.initializers) own.insert(t.name);
  for (const SparseTensorProto& t : graph.sparseInitializers) own.insert(t.values.name);
  for (const Node& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  std::vector<std::string> read;
  for (const Node& node : graph.nodes) addNamesRead(node, read);
  for (const ValueInfo& info : graph.outputs) read.push_back(info.name);
  for (std::string& name : read)
    if (!own.contains(name)) names.push_back(std::move(name));
}

// Attributes that name one of the function's become the caller's, in nested graphs too; those it does not give vanish.
void resolveAttributes(std::vector<Node>& nodes, const std::map<std::string, const Attribute*>& given) {
  for (Node& node : nodes) {
    std::vector<Attribute> attributes;
    for (Attribute& attribute : node.attributes) {
      if (attribute.g) {
        attribute.g = std::make_shared<Graph>(*attribute.g);
        resolveAttributes(attribute.g->nodes, given);
      }
      for (Graph& graph : attribute.graphs) resolveAttributes(graph.nodes, given);
      if (attribute.refAttrName.empty()) {
        attributes.push_back(std::move(attribute));
      } else if (const auto it = given.find(attribute.refAttrName); it != given.end()) {
        attributes.push_back(*it->second);
        attributes.back().name = attribute.name;
      }
    }
    node.attributes = std::move(attributes);
  }
}

std::vector<std::string> unique(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

bool isSmall(const ModelValue& value) { return value.isTensor() && value.tensor().type().elements() <= kSmallValue; }

}  // namespace

std::vector<std::string> namesRead(const Node& node) {
  std::vector<std::string> names;
  addNamesRead(node, names);
  return unique(std::move(names));
}

std::vector<std::string> freeNames(const Graph& graph) {
  std::vector<std::string> names;
  addFreeNames(graph, names);
  return unique(std::move(names));
}

const Function* calledFunction(const Model& model, const Node& node) {
  for (const Function& function : model.functions)
    if (function.name == node.opType && function.domain == node.domain && function.overload == node.overload)
      return &function;
  return nullptr;
}

Graph bodyOf(const Function& function, const Node& call) {
  std::map<std::string, const Attribute*> given;
  for (const Attribute& attribute : function.attributeProtos) given[attribute.name] = &attribute;
  for (const Attribute& attribute : call.attributes) given[attribute.name] = &attribute;
  Graph graph;
  graph.name = function.name;
  graph.nodes = function.nodes;
  resolveAttributes(graph.nodes, given);
  for (const std::string& name : function.inputs) graph.inputs.push_back({.name = name, .type = {}});
  for (const std::string& name : function.outputs) graph.outputs.push_back({.name = name, .type = {}});
  return graph;
}

// ---------------------------------------------------------------- members of GraphImport

bool GraphImport::waits(const Node& node) const {
  if (deferredNames_.empty() || scopes_.size() > 1) return false;
  const std::vector<std::string> names = namesRead(node);
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return deferredNames_.contains(n); });
}

void GraphImport::defer(const Node& node, const NeedsValue& needs, const std::vector<Imported>& operands,
                        AtRunTime atRunTime) {
  Deferred deferred{.node = current_, .why = Deferred::Why::Alone, .values = {}};
  if (atRunTime == AtRunTime::Freeze && needs.value) {
    if (std::all_of(needs.inputs.begin(), needs.inputs.end(), isAtHand_)) {
      freeze_.insert(needs.inputs.begin(), needs.inputs.end());
      deferred.why = Deferred::Why::Waits;
    } else {
      // The operands that the value is computed from.
      std::set<const aglow::Node*> seen;
      std::vector<const aglow::Node*> work = {needs.value.node};
      std::unordered_map<const aglow::Node*, std::string> names;
      const auto note = [&](auto&& self, const Imported& value, const std::string& name) -> void {
        if (value.kind == Imported::Kind::Tensor) names.emplace(value.tensor.node, name);
        for (const Imported& item : value.items) self(self, item, name);
      };
      for (size_t i = 0; i < operands.size(); ++i) note(note, operands[i], node.inputs[i]);
      std::set<std::string> values;
      while (!work.empty()) {
        const aglow::Node* at = work.back();
        work.pop_back();
        if (!seen.insert(at).second) continue;
        if (const auto it = names.find(at); it != names.end()) {
          if (at->op() != Op::Constant) values.insert(it->second);
          continue;
        }
        for (const Value operand : at->inputs())
          if (operand) work.push_back(operand.node);
      }
      deferred.why = Deferred::Why::NeedsValues;
      deferred.values.assign(values.begin(), values.end());
    }
  }
  deferred_.push_back(std::move(deferred));
  deferredNames_.insert(node.outputs.begin(), node.outputs.end());
}

void GraphImport::importKnown(const PartRequest& request, Scope& scope) {
  std::set<std::string> read;
  for (const size_t i : request.nodes)
    for (std::string& name : namesRead(request.graph.nodes[i])) read.insert(std::move(name));
  for (const std::string& name : read) {
    const auto it = request.known.find(name);
    if (it == request.known.end()) continue;
    const auto tensorOf = [&](const std::string& itemName, const Tensor& tensor) {
      if (it->second.constant) return Imported::of(result_.module->addConstant(itemName, tensor)->result());
      const Value v = builder_.input(itemName, tensor.type());
      inputNames_[v.node] = name;
      return Imported::of(v);
    };
    const ModelValue& value = it->second.value;
    if (value.onHost()) {
      scope.onHost.insert(name);
      continue;
    }
    Imported imported = Imported::none();
    if (value.isSequence) {
      std::vector<Imported> items;
      for (const Tensor& tensor : value.tensors)
        items.push_back(tensorOf(fmt::format("{}[{}]", name, items.size()), tensor));
      imported = Imported::sequence(std::move(items));
    } else if (!value.none) {
      imported = tensorOf(name, value.tensor());
    }
    if (!it->second.constant) result_.interface.inputs.push_back(portOf(name, imported));
    define(scope, name, std::move(imported));
  }
  std::set<std::string> wanted;
  for (const std::string& name : read)
    if (!request.known.contains(name)) wanted.insert(name);
  importInitializers(request.graph, scope, &wanted);
}

void GraphImport::importPartOutputs(const PartRequest& request, Scope& scope, ImportedPart& part) {
  std::set<std::string> needed;
  for (const Deferred& deferred : deferred_)
    for (std::string& name : namesRead(request.graph.nodes[deferred.node])) needed.insert(std::move(name));
  std::set<std::string> outside;
  for (const TensorProto& t : request.graph.initializers) outside.insert(t.name);
  for (const SparseTensorProto& t : request.graph.sparseInitializers) outside.insert(t.values.name);
  for (const auto& [name, value] : request.known) outside.insert(name);
  for (const ValueInfo& info : request.graph.outputs) {
    const Imported* value = lookup(scope, info.name);
    if (value != nullptr && !checkOutput(info, *value)) continue;
    if (value == nullptr && !outside.contains(info.name) && !deferredNames_.contains(info.name) &&
        !isFailed(scope, info.name))
      report(uncomputedOutput(info.name));
    needed.insert(info.name);
  }
  std::set<std::string> computed;
  for (const size_t i : request.nodes)
    computed.insert(request.graph.nodes[i].outputs.begin(), request.graph.nodes[i].outputs.end());
  for (const std::string& name : needed) {
    const Imported* value = computed.contains(name) ? lookup(scope, name) : nullptr;
    if (value == nullptr) continue;  // deferred itself, or known already
    if (value->kind == Imported::Kind::None)
      part.constants.emplace(name, ModelValue::absent());
    else if (value->kind == Imported::Kind::Tensor && isConstant(value->tensor))
      part.constants.emplace(name, ModelValue::of(asConstant(value->tensor)->tensor()));
    else
      addOutput(name, *value);
  }
}

Diagnosed<ImportedPart> GraphImport::importPart(const PartRequest& request) {
  mayCut_ = true;
  isAtHand_ = [&request](const std::string& name) {
    const auto it = request.known.find(name);  // state is never: it is known only to a run
    return it != request.known.end() && isSmall(it->second.value);
  };
  checkOpsets(request.opsets);
  if (!diagnostics_.empty()) return diagnostics_;
  Scope scope;
  scope.opsets = &request.opsets;
  const Entered entered(*this, scope);
  variables_ = variablesOf(request.graph);
  importKnown(request, scope);
  inOneFunction_ = &request.graph == &model_.graph;
  size_t position = 0;
  for (const size_t i : request.nodes) {
    inOneFunction_ = inOneFunction_ && i == position++;
    current_ = i;
    importNode(request.graph.nodes[i], scope);
  }
  ImportedPart part;
  if (diagnostics_.empty() && !freeze_.empty()) {
    part.freeze = std::move(freeze_);
    return part;
  }
  importPartOutputs(request, scope, part);
  if (!diagnostics_.empty()) {
    reportFaultsWithoutTypes(model_, diagnostics_);
    return diagnostics_;
  }
  part.model = std::move(result_);
  part.deferred = std::move(deferred_);
  return part;
}

Diagnosed<std::vector<ModelValue>> GraphImport::evaluateNode(const PartRequest& request) {
  Scope scope;
  scope.opsets = &request.opsets;
  const Entered entered(*this, scope);
  importKnown(request, scope);
  inOneFunction_ = false;
  const Node& node = request.graph.nodes[request.nodes.front()];
  importNode(node, scope);
  if (!diagnostics_.empty()) return diagnostics_;
  std::vector<ModelValue> results;
  for (const std::string& name : node.outputs) {
    const Imported* value = name.empty() ? nullptr : lookup(scope, name);
    if (value == nullptr || value->kind == Imported::Kind::None) {
      results.push_back(ModelValue::absent());
    } else if (value->kind == Imported::Kind::Tensor) {
      results.push_back(ModelValue::of(constantOf(value->tensor)));
    } else {
      std::vector<Tensor> items;
      for (const Imported& item : value->items) items.push_back(constantOf(item.tensor));
      results.push_back(ModelValue::sequence(std::move(items)));
    }
  }
  return results;
}

Diagnosed<ImportedPart> importPart(const Model& model, const PartRequest& request) {
  try {
    return GraphImport(model, *request.evaluator, request.tolerance).importPart(request);
  } catch (const BuildFailure& failure) {
    return failure.error();
  }
}

Diagnosed<std::vector<ModelValue>> evaluateNode(const Model& model, const PartRequest& request) {
  KnownValues constants = request.known;
  for (auto& [name, known] : constants) known.constant = true;
  try {
    return GraphImport(model, *request.evaluator, request.tolerance)
        .evaluateNode({.graph = request.graph,
                       .opsets = request.opsets,
                       .nodes = request.nodes,
                       .known = constants,
                       .evaluator = request.evaluator,
                       .tolerance = request.tolerance});
  } catch (const BuildFailure& failure) {
    return failure.error();
  }
}

}  // namespace aglow::onnx
