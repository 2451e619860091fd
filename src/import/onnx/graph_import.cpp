// Walks the nodes of a model in order, hands each to its handler, folds what is constant, and collects every fault.
#include "import/onnx/graph_import.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/gradient_names.h"
#include "import/onnx/host_values.h"
#include "import/onnx/labels.h"
#include "import/onnx/nchwc.h"
#include "import/onnx/own_domain.h"
#include "import/onnx/tensor_data.h"

namespace aglow::onnx {

namespace {

// Thrown out of a nested graph or function whose own nodes' faults are in the diagnostics already.
struct Reported {};

constexpr int64_t kOldestOpset = 1;
constexpr int64_t kNewestOpset = 28;
constexpr size_t kMaxNodes = 1'000'000;                 // imported in all, unrolled loops and called functions included
constexpr int64_t kConstantBytes = int64_t{256} << 20;  // of a value that a shape depends on
constexpr int64_t kFoldBytes = 64 * 1024;               // results up to this size are folded at once

}  // namespace

GraphImport::GraphImport(const Model& model, Evaluator& evaluator, const Tolerance& tolerance)
    : model_(model),
      evaluator_(evaluator),
      tolerance_(tolerance),
      result_{.module = std::make_unique<Module>(), .interface = {.function = "main"}},
      function_(result_.module->addFunction(result_.interface.function)),
      builder_(*function_) {}

void GraphImport::checkOpsets(const Opsets& opsets) {
  const auto standard = opsets.find("");
  if (standard != opsets.end() && (standard->second < kOldestOpset || standard->second > kNewestOpset))
    report({.code = Code::UnsupportedFeature,
            .message = fmt::format("the model is written for opset {}; opsets {} to {} are supported", standard->second,
                                   kOldestOpset, kNewestOpset),
            .where = {},
            .hint = "convert it with onnx.version_converter"});
  if (opsets.empty())
    report({.code = Code::BadGraph, .message = "the model does not say which opset it is written for"});
}

Diagnosed<ImportedModel> GraphImport::importWhole(const ImportOptions& options, const std::set<std::string>& frozen) {
  isAtHand_ = [&options](const std::string& name) {
    const auto it = options.given.find(name);
    return options.variables.contains(name) || (it != options.given.end() && !it->second.tensors.empty());
  };
  checkOpsets(model_.opsets);
  if (!diagnostics_.empty()) return diagnostics_;  // no operator means what it says
  Scope scope;
  scope.opsets = &model_.opsets;
  const Entered entered(*this, scope);
  const Diagnostics departures = tolerance_.judge(model_);
  for (const Error& fault : departures.errors()) report(fault);
  variables_ = variablesOf(model_.graph);
  variables_.insert(options.variables.begin(), options.variables.end());
  for (const std::string& name : frozen) variables_.erase(name);
  importInitializers(model_.graph, scope);
  importInputs(model_.graph, options, frozen, scope);
  importNodes(model_.graph.nodes, scope);
  importOutputs(model_.graph, scope);
  if (diagnostics_.empty()) return std::move(result_);
  // Nodes that need what failed, branches not taken and functions not called have not been looked at yet.
  reportFaultsWithoutTypes(model_, diagnostics_);
  return diagnostics_;
}

void GraphImport::depart(const Node& node, Departure departure) const {
  if (tolerance_.strict) throw BuildFailure(std::move(departure.fault));
  departure.fault = placed(std::move(departure.fault).at(placeOf(node)));
  tolerance_.judge(departure);
}

Error GraphImport::placed(Error error) const {
  // A function's own faults are the same wherever it is called from.
  const bool own = error.code == Code::UnsupportedOp || error.code == Code::BadGraph;
  for (auto it = scopes_.rbegin(); it != scopes_.rend(); ++it) {
    const Scope& scope = **it;
    if (scope.function != nullptr && own) {
      error = std::move(error).at(placeOf(*scope.function));
      break;
    }
    if (!scope.place.empty()) error = std::move(error).at(scope.place);
  }
  return error;
}

void GraphImport::importInitializers(const Graph& graph, Scope& scope, const std::set<std::string>* wanted) {
  const auto typed = [&](const std::string& name, Result<Tensor> tensor) -> Result<Tensor> {
    AGLOW_TRY(const Tensor plain, std::move(tensor));
    AGLOW_TRY(const Type type, fullType(model_, name, plain.type()));
    return type == plain.type() ? plain : plain.retyped(type);
  };
  const auto add = [&](const std::string& name, Result<Tensor> stored) {
    Result<Tensor> tensor = typed(name, std::move(stored));
    if (!tensor.ok()) {
      report(std::move(tensor).error());
      scope.failed.insert(name);
      return;
    }
    define(scope, name, Imported::of(result_.module->addConstant(name, *std::move(tensor))->result()));
  };
  const auto isWanted = [&](const std::string& name) { return wanted == nullptr || wanted->contains(name); };
  for (const TensorProto& proto : graph.initializers) {
    if (!isWanted(proto.name)) continue;
    if (proto.dataType != kStringType) {
      add(proto.name, toTensor(proto, model_));
      continue;
    }
    const Result<StringTensor> strings = toStrings(proto);
    if (!strings.ok()) report(strings.error());
    if (mayCut_ || !strings.ok()) {
      scope.onHost.insert(proto.name);
      continue;
    }
    NumberedStrings words = numbered(*strings);
    const Value numbers = result_.module->addConstant(proto.name, std::move(words.numbers))->result();
    define(scope, proto.name, Imported::labelled(numbers, std::move(words.labels)));
  }
  for (const SparseTensorProto& proto : graph.sparseInitializers)
    if (isWanted(proto.values.name)) add(proto.values.name, toTensor(proto, model_));
}

void GraphImport::importInputs(const Graph& graph, const ImportOptions& options, const std::set<std::string>& frozen,
                               Scope& scope) {
  InputTypes inputs = resolveInputs(graph, options);
  for (const Error& error : inputs.diagnostics.errors()) report(error);

  for (const ValueInfo& info : graph.inputs) {
    const auto given = options.given.find(info.name);
    const bool isGiven = given != options.given.end();
    if (scope.values.contains(info.name)) {
      if (!isGiven) continue;  // the initializer is its value
      scope.values.erase(info.name);
    }
    if (scope.onHost.contains(info.name) && !isGiven) continue;
    if (isGiven && given->second.onHost()) {
      report(needsRuntime().at(fmt::format("input '{}'", info.name)));
      scope.failed.insert(info.name);
      continue;
    }
    const bool freeze = frozen.contains(info.name);
    const auto tensorInput = [&](const std::string& name, const Type& type, const Tensor* value) {
      if (freeze) return Imported::of(result_.module->addConstant(name, *value)->result());
      const Result<Type> full = fullType(model_, name, type);
      if (!full.ok()) report(full.error());
      const Value v = builder_.input(name, full.ok() ? *full : type);
      inputNames_[v.node] = info.name;
      return Imported::of(v);
    };
    Imported value;
    if (isGiven && given->second.none) {
      value = Imported::none();
    } else if (isGiven && given->second.isSequence) {
      std::vector<Imported> items;
      for (const Tensor& t : given->second.tensors)
        items.push_back(tensorInput(fmt::format("{}[{}]", info.name, items.size()), t.type(), &t));
      value = Imported::sequence(std::move(items));
    } else if (const auto type = inputs.types.find(info.name); type != inputs.types.end()) {
      value = tensorInput(info.name, type->second, isGiven ? &given->second.tensors.front() : nullptr);
    } else {
      scope.failed.insert(info.name);  // reported above
      continue;
    }
    Port port = portOf(info.name, value);
    if (freeze) port.kind = Port::Kind::Frozen;
    result_.interface.inputs.push_back(std::move(port));
    define(scope, info.name, std::move(value));
  }
}

Port GraphImport::portOf(const std::string& name, const Imported& value) {
  Port port{.kind = Port::Kind::None, .name = name, .placeholder = {}, .type = {}, .items = {}};
  if (value.hasTensor()) {
    port.kind = Port::Kind::Tensor;
    port.labels = value.labels;
    port.placeholder = value.tensor.node->name();
    port.type = value.tensor.type();
  } else if (value.kind == Imported::Kind::Sequence) {
    port.kind = Port::Kind::Sequence;
    for (const Imported& item : value.items) port.items.push_back(portOf(name, item));
  }
  return port;
}

void GraphImport::addOutput(const std::string& outputName, const Imported& outputValue) {
  const auto saved = [&](auto&& self, const std::string& name, const Imported& value) -> Imported {
    Imported copy = value;
    if (value.hasTensor()) {
      Placeholder* target = result_.module->addPlaceholder(name, value.tensor.type());
      builder_.save(value.tensor, target);
      copy.tensor = target->result();
    }
    for (size_t i = 0; i < copy.items.size(); ++i)
      copy.items[i] = self(self, fmt::format("{}[{}]", name, i), copy.items[i]);
    return copy;
  };
  result_.interface.outputs.push_back(portOf(outputName, saved(saved, outputName, outputValue)));
}

// Whether a value is of the kind that the model declares.
bool GraphImport::checkOutput(const ValueInfo& info, const Imported& value) {
  if (value.kind != Imported::Kind::Tensor || info.type.kind != TypeProto::Kind::Tensor || info.type.elemType == 0 ||
      elemInfo(storageKind(value.tensor.kind())).onnx == info.type.elemType)
    return true;
  report({.code = Code::BadGraph,
          .message = fmt::format("output '{}' is declared as {}, but its node computes {}", info.name,
                                 describe(info.type), value.tensor.type().text())});
  return false;
}

void GraphImport::importOutputs(const Graph& graph, Scope& scope) {
  if (graph.outputs.empty()) report({.code = Code::BadGraph, .message = "the graph has no outputs"});
  for (const ValueInfo& info : graph.outputs) {
    if (isFailed(scope, info.name)) continue;
    const Imported* value = lookup(scope, info.name);
    if (value == nullptr) {
      report(isOnHost(scope, info.name) ? needsRuntime().at(fmt::format("output '{}'", info.name))
                                        : uncomputedOutput(info.name));
      continue;
    }
    if (checkOutput(info, *value)) addOutput(info.name, *value);
  }
}

// ---------------------------------------------------------------- names

const Imported* GraphImport::lookup(const Scope& scope, const std::string& name) const {
  for (const Scope* s = &scope; s != nullptr; s = s->function != nullptr ? nullptr : s->outer)
    if (const auto it = s->values.find(name); it != s->values.end()) return &it->second;
  return nullptr;
}

bool GraphImport::isFailed(const Scope& scope, const std::string& name) const {
  for (const Scope* s = &scope; s != nullptr; s = s->function != nullptr ? nullptr : s->outer)
    if (s->failed.contains(name)) return true;
  return false;
}

Value GraphImport::asVariable(const std::string& name, Value value) {
  Module& module = *result_.module;
  try {
    Tensor initial = constantOf(value);
    if (isConstant(value) && value.node->uses().empty()) module.eraseStorage(value.node);
    const Value variable = module.addState(name, std::move(initial))->result();
    inputNames_[variable.node] = name;
    return variable;
  } catch (const NeedsValue&) {
    return value;  // computed from inputs or other variables
  }
}

void GraphImport::define(Scope& scope, const std::string& name, Imported value) {
  if (&scope == scopes_.front() && value.hasTensor() && variables_.contains(name))
    value.tensor = asVariable(name, value.tensor);
  if (!scope.values.try_emplace(name, std::move(value)).second)
    report({.code = Code::BadGraph, .message = fmt::format("value '{}' is defined twice", name)});
}

// ---------------------------------------------------------------- nodes

void GraphImport::importNodes(const std::vector<Node>& nodes, Scope& scope) {
  for (const Node& node : nodes) importNode(node, scope);
}

// The node with attributes that name an attribute of the function around it replaced by the caller's.
Node GraphImport::resolved(const Node& node, const Scope& scope) const {
  Node copy = node;
  copy.attributes.clear();
  for (const Attribute& attribute : node.attributes) {
    if (attribute.refAttrName.empty()) {
      copy.attributes.push_back(attribute);
      continue;
    }
    for (const Scope* s = &scope; s != nullptr; s = s->function != nullptr ? nullptr : s->outer) {
      const auto it = s->attributes.find(attribute.refAttrName);
      if (it == s->attributes.end()) continue;
      copy.attributes.push_back(*it->second);
      copy.attributes.back().name = attribute.name;
      break;
    }
  }
  return copy;
}

void GraphImport::importNode(const Node& original, Scope& scope) {
  const auto failNode = [&](Error error) {
    report(std::move(error).at(placeOf(original)));
    for (const std::string& name : original.outputs) scope.failed.insert(name);
  };
  if (++imported_ > kMaxNodes)
    throw BuildFailure(
        {.code = Code::LimitReached, .message = fmt::format("the model unfolds into more than {} nodes", kMaxNodes)});

  std::vector<Imported> operands;
  bool failed = false, onHost = false;  // an operand that lives on the host
  const bool waiting = waits(original);
  for (const std::string& name : operandNames(original)) {
    if (waiting) break;
    const Imported* value = name.empty() ? nullptr : lookup(scope, name);
    if (value == nullptr && !name.empty()) {
      const bool hosted = isOnHost(scope, name);
      if (!hosted && !isFailed(scope, name)) failNode(undefinedValue(name));
      onHost = onHost || hosted;
      failed = failed || !hosted;
      continue;
    }
    operands.push_back(value == nullptr ? Imported::none() : *value);
  }

  if (auto fault = operatorFault(original, *scope.opsets, model_)) {
    failNode(*std::move(fault));
    return;
  }
  if (waiting) {
    deferred_.push_back({.node = current_, .why = Deferred::Why::Waits, .values = {}});
    deferredNames_.insert(original.outputs.begin(), original.outputs.end());
    return;
  }
  if (asksForGradient(original) && !(inOneFunction_ && deferred_.empty())) {
    failNode({.code = Code::UnsupportedFeature,
              .message = "gradients of a model that has to be cut into parts are not supported"});
    return;
  }
  const onnx::Function* function = calledFunction(model_, original);
  const int64_t version = function != nullptr ? 0 : scope.opsets->at(original.domain);
  const OpRow* row = function != nullptr ? nullptr : findRow(original.domain, original.opType, version);
  if (failed) {
    for (const std::string& name : original.outputs) scope.failed.insert(name);
    return;
  }

  const bool refers = std::any_of(original.attributes.begin(), original.attributes.end(),
                                  [](const Attribute& a) { return !a.refAttrName.empty(); });
  const Node copy = refers ? resolved(original, scope) : Node{};
  const Node& node = refers ? copy : original;
  std::vector<Imported> results;
  aglow::Node* const last = function_->back();
  builder_.named(!node.name.empty() ? node.name : node.outputs.empty() ? node.opType : node.outputs.front());
  try {
    const std::optional<LabelledNode> labelled = onHost || mayCut_ ? std::nullopt : onNumbers(node, operands);
    if (onHost || (makesStrings(node) && !labelled && (mayCut_ || node.opType != "Constant"))) leaveToHost();
    if (function != nullptr) {
      results = callFunction(*function, node, operands);
    } else {
      OpImport op(*this, labelled ? labelled->node : node, version, builder_, labelled ? labelled->operands : operands);
      row->handler(op);
      results = std::move(op.results());
      if (labelled && !results.empty() && results.front().kind == Imported::Kind::Tensor)
        results.front() = Imported::labelled(results.front().tensor, labelled->labels);
    }
    foldSince(last, results);
  } catch (const BuildFailure& failure) {
    if (failure.error().code == Code::LimitReached) throw;
    failNode(failure.error());
    return;
  } catch (const Reported&) {
    scope.failed.insert(original.outputs.begin(), original.outputs.end());
    return;
  } catch (const NeedsValue& needs) {
    if (mayCut_ && scopes_.size() > 1) throw;  // the node around all this is deferred
    if (mayCut_) {
      defer(original, needs, operands, row == nullptr ? AtRunTime::Alone : row->atRunTime);
      while (function_->back() != last) function_->erase(function_->back());
      return;
    }
    if (std::all_of(needs.inputs.begin(), needs.inputs.end(), isAtHand_)) throw;
    failNode({.code = Code::DynamicShape,
              .message = fmt::format("a shape depends on the value of input '{}', which is known only at run time",
                                     fmt::join(needs.inputs, "', '")),
              .where = {},
              .hint = std::string(kDynamicHint)});
    return;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = node.outputs[i];
    if (name.empty()) continue;
    if (i >= results.size()) {
      failNode({.code = Code::BadNode,
                .message = fmt::format("the operator has {} outputs, the node names {}", results.size(),
                                       node.outputs.size())});
      return;
    }
    define(scope, name, results[i]);
  }
}

std::vector<Imported> GraphImport::callFunction(const onnx::Function& function, const Node& node,
                                                const std::vector<Imported>& operands) {
  if (std::any_of(scopes_.begin(), scopes_.end(), [&](const Scope* s) { return s->function == &function; }))
    fail(Code::BadGraph, fmt::format("function '{}' calls itself", function.name));
  if (operands.size() > function.inputs.size())
    fail(Code::BadNode,
         fmt::format("function '{}' takes {} inputs, got {}", function.name, function.inputs.size(), operands.size()));
  Scope scope;
  scope.opsets = &function.opsets;
  scope.place = placeOf(node);
  for (const Attribute& attribute : function.attributeProtos) scope.attributes[attribute.name] = &attribute;
  for (const Attribute& attribute : node.attributes) scope.attributes[attribute.name] = &attribute;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    define(scope, function.inputs[i], i < operands.size() ? operands[i] : Imported::none());
  scope.function = &function;
  const Entered entered(*this, scope);
  importNodes(function.nodes, scope);
  std::vector<Imported> results;
  for (const std::string& name : function.outputs) {
    const Imported* value = lookup(scope, name);
    if (value == nullptr) {
      if (isFailed(scope, name)) throw Reported{};
      if (isOnHost(scope, name)) leaveToHost();
      fail(Code::BadGraph, fmt::format("function '{}' does not compute its output '{}'", function.name, name));
    }
    results.push_back(*value);
  }
  return results;
}

std::vector<Imported> GraphImport::importNested(const Graph& graph, const std::vector<Imported>& inputs,
                                                std::string place) {
  if (inputs.size() != graph.inputs.size())
    fail(Code::BadNode, fmt::format("the nested graph '{}' takes {} inputs, expected {}", graph.name,
                                    graph.inputs.size(), inputs.size()));
  Scope scope;
  scope.outer = scopes_.back();
  scope.opsets = scope.outer->opsets;
  scope.place = std::move(place);
  const Entered entered(*this, scope);
  for (size_t i = 0; i < inputs.size(); ++i) define(scope, graph.inputs[i].name, inputs[i]);
  importInitializers(graph, scope);
  importNodes(graph.nodes, scope);
  std::vector<Imported> results;
  for (const ValueInfo& info : graph.outputs) {
    const Imported* value = lookup(scope, info.name);
    if (value == nullptr) {
      if (isFailed(scope, info.name)) throw Reported{};
      if (isOnHost(scope, info.name)) leaveToHost();
      fail(Code::BadGraph, fmt::format("the nested graph does not compute its output '{}'", info.name));
    }
    results.push_back(*value);
  }
  return results;
}

std::optional<std::vector<Imported>> GraphImport::tryNested(const Graph& graph, std::string place) {
  aglow::Node* const last = function_->back();
  const Diagnostics diagnostics = diagnostics_;
  const size_t imported = imported_;
  try {
    std::vector<Imported> results = importNested(graph, {}, std::move(place));
    if (diagnostics_.errors().size() == diagnostics.errors().size()) return results;
  } catch (const BuildFailure&) {
  } catch (const Reported&) {
  } catch (const NeedsValue&) {
  }
  while (function_->back() != last) function_->erase(function_->back());
  diagnostics_ = diagnostics;
  imported_ = imported;
  return std::nullopt;
}

int64_t GraphImport::channelBlock() {
  if (channelBlock_ == 0) channelBlock_ = onnx::channelBlock(model_);
  return channelBlock_;
}

// ---------------------------------------------------------------- constants

Result<Tensor> GraphImport::tensorOf(const Attribute& attribute) const {
  return attribute.sparse ? toTensor(*attribute.sparse, model_) : toTensor(*attribute.t, model_);
}

namespace {

std::vector<Tensor> constantOperands(const aglow::Node& node) {
  std::vector<Tensor> tensors;
  for (const Value v : node.inputs()) tensors.push_back(v ? asConstant(v)->tensor() : Tensor());
  return tensors;
}

bool operandsAreConstant(const aglow::Node& node) {
  if (node.predicate()) return false;
  const std::vector<Value> inputs = node.inputs();
  return std::all_of(inputs.begin(), inputs.end(), [](Value v) { return !v || isConstant(v); });
}

}  // namespace

// Replaces nodes after `last` whose operands are constant by their small results, so that shape arithmetic vanishes
// while the model is read. A node that cannot be computed stays; it fails again, with its place, when it is run.
// Quantized weights stay what they are: the optimizer computes with their integers.
void GraphImport::foldSince(aglow::Node* last, std::vector<Imported>& results) {
  std::unordered_map<const aglow::Node*, std::vector<Value>> folded;
  aglow::Node* node = last == nullptr ? function_->front() : function_->next(last);
  while (node != nullptr) {
    aglow::Node* next = function_->next(node);
    int64_t bytes = 0;
    for (const Type& type : node->types()) bytes += type.bytes();
    if (bytes <= kFoldBytes && node->op() != Op::DequantizeLinear && operandsAreConstant(*node)) {
      auto values = evaluator_.evaluate(*node, constantOperands(*node));
      if (values.ok()) {
        std::vector<Value>& constants = folded[node];
        for (int i = 0; i < node->resultCount(); ++i) {
          const Value v = builder_.constant((*values)[static_cast<size_t>(i)], node->name());
          replaceAllUses(node->result(i), v);
          constants.push_back(v);
        }
        function_->erase(node);
      }
    }
    node = next;
  }
  const auto update = [&](auto&& self, Imported& value) -> void {
    for (Imported& item : value.items) self(self, item);
    if (!value.hasTensor()) return;
    if (const auto it = folded.find(value.tensor.node); it != folded.end())
      value.tensor = it->second[static_cast<size_t>(value.tensor.index)];
  };
  for (Imported& value : results) update(update, value);
}

Tensor GraphImport::constantOf(Value v) {
  if (const Constant* c = asConstant(v)) return c->tensor();
  // All that the value depends on, in the function's order.
  std::set<const aglow::Node*> needed;
  std::set<std::string> inputs;
  std::vector<const aglow::Node*> work = {v.node};
  while (!work.empty()) {
    const aglow::Node* node = work.back();
    work.pop_back();
    if (!needed.insert(node).second) continue;
    if (node->op() == Op::Placeholder) {
      // State of operators, as the counters of random ones, has a name of its own.
      const auto named = inputNames_.find(node);
      inputs.insert(named == inputNames_.end() ? node->name() : named->second);
    }
    for (const Value operand : node->inputs())
      if (operand) work.push_back(operand.node);
    if (node->predicate()) work.push_back(node->predicate().node);
  }
  if (!inputs.empty()) throw NeedsValue{v, {inputs.begin(), inputs.end()}};

  std::unordered_map<const aglow::Node*, std::vector<Tensor>> known;
  for (const auto& node : function_->nodes()) {
    if (!needed.contains(node.get())) continue;
    std::vector<Tensor> operands;
    for (const Value operand : node->inputs()) {
      if (!operand)
        operands.emplace_back();
      else if (const Constant* c = asConstant(operand))
        operands.push_back(c->tensor());
      else
        operands.push_back(known.at(operand.node)[static_cast<size_t>(operand.index)]);
    }
    for (const Type& type : node->types())
      if (type.bytes() > kConstantBytes)
        fail(Code::TooLarge,
             fmt::format("a value that decides a shape would be computed from a {}, which is over the limit "
                         "of {} bytes",
                         type.text(), kConstantBytes));
    known[node.get()] = orFail(evaluator_.evaluate(*node, operands));
  }
  return known.at(v.node)[static_cast<size_t>(v.index)];
}

}  // namespace aglow::onnx
