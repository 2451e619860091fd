#include "dynamic/graph_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "compile/evaluate.h"
#include "import/onnx/faults.h"
#include "import/onnx/tensor_data.h"
#include "runtime/key.h"
#include "tensor/slices.h"

namespace aglow {

namespace {

using onnx::Deferred;
using onnx::KnownValue;

std::atomic<size_t> runners = 0;

// Below this, interpreting a part takes less time than generating code for it.
constexpr double kSmallWork = 1e6;

// Operations, roughly and rather too many: the operands of a product or window operator say how long its sums are.
double workOf(const Function& function) {
  double work = 0;
  for (const auto& node : function.nodes()) {
    double results = 0, operands = 0, product = 1;
    for (const Type& type : node->types()) results += static_cast<double>(type.elements());
    for (const Value v : node->inputs()) {
      if (!v) continue;
      operands += static_cast<double>(v.type().elements());
      product *= std::max<double>(static_cast<double>(v.type().elements()), 1);
    }
    const OpKind kind = node->def().kind;
    if (kind == OpKind::Storage || kind == OpKind::View) continue;
    const bool sums = kind != OpKind::Elementwise && node->inputCount() > 1 && results > 0;
    work += results + operands + (sums ? results * std::sqrt(product / results) : 0);
  }
  return work;
}

}  // namespace

GraphRunner::GraphRunner(RunnerContext& context, const onnx::Graph& graph, const onnx::Opsets& opsets,
                         std::shared_ptr<const onnx::Graph> owner, int depth)
    : context_(context), graph_(graph), opsets_(opsets), owner_(std::move(owner)), depth_(depth), number_(runners++) {
  for (const onnx::TensorProto& t : graph.initializers) initializerNames_.insert(t.name);
  for (const onnx::SparseTensorProto& t : graph.sparseInitializers) initializerNames_.insert(t.values.name);
  live_.resize(graph.nodes.size());
  std::set<std::string> wanted;
  for (const onnx::ValueInfo& info : graph.outputs) wanted.insert(info.name);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const onnx::Node& node = graph.nodes[i];
    live_[i] = std::any_of(node.outputs.begin(), node.outputs.end(),
                           [&](const std::string& name) { return wanted.contains(name); });
    if (live_[i])
      for (std::string& name : onnx::namesRead(node)) wanted.insert(std::move(name));
  }
  // All nodes, so that faults of nodes that nothing depends on are reported too.
  std::vector<size_t> all(graph.nodes.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  pendingOf(std::move(all), {});
}

GraphRunner::~GraphRunner() = default;

PendingNodes* GraphRunner::pendingOf(std::vector<size_t> nodes, std::set<std::string> frozen) {
  const std::lock_guard lock(mutex_);
  for (const auto& known : pending_) {
    if (known->nodes != nodes) continue;
    known->frozen.merge(frozen);
    return known.get();
  }
  auto made = std::make_unique<PendingNodes>();
  made->number = pending_.size();
  std::set<std::string> computed;
  for (const size_t i : nodes) computed.insert(graph_.nodes[i].outputs.begin(), graph_.nodes[i].outputs.end());
  for (const size_t i : nodes)
    for (std::string& name : onnx::namesRead(graph_.nodes[i])) made->reads.insert(std::move(name));
  for (const onnx::ValueInfo& info : graph_.outputs) made->reads.insert(info.name);
  for (const std::string& name : computed) made->reads.erase(name);
  made->nodes = std::move(nodes);
  made->frozen = std::move(frozen);
  pending_.push_back(std::move(made));
  return pending_.back().get();
}

const KnownValue* GraphRunner::find(const std::string& name, const Values& values) {
  if (const auto it = values.find(name); it != values.end()) return &it->second;
  if (!initializerNames_.contains(name)) return nullptr;
  const std::lock_guard lock(mutex_);
  if (const auto it = initializers_.find(name); it != initializers_.end()) return &it->second;
  Result<ModelValue> value = Error{.code = Code::Internal, .message = "an initializer is gone"};
  for (const onnx::TensorProto& t : graph_.initializers)
    if (t.name == name) value = onnx::toValue(t, context_.model);
  for (const onnx::SparseTensorProto& t : graph_.sparseInitializers)
    if (t.values.name == name)
      if (Result<Tensor> tensor = onnx::toTensor(t, context_.model); tensor.ok())
        value = ModelValue::of(*std::move(tensor));
  if (!value.ok()) return nullptr;
  return &initializers_.emplace(name, KnownValue{.value = *std::move(value), .constant = true}).first->second;
}

// ---------------------------------------------------------------- parts

std::string GraphRunner::keyOf(const PendingNodes& pending, const std::set<std::string>& frozen,
                               const Values& values) const {
  Key key;
  key.add(number_);
  key.add(pending.number);
  size_t position = 0;
  for (const std::string& name : pending.reads) {
    ++position;
    const auto it = values.find(name);
    if (it == values.end()) continue;  // an initializer, always the same
    key.add(position);
    // Values that decide a shape count by their bytes: callers may change what lies at an address.
    key.add(it->second.value, it->second.constant     ? Key::Of::Constant
                              : frozen.contains(name) ? Key::Of::Bytes
                                                      : Key::Of::Type);
  }
  return key.bytes();
}

Diagnosed<std::shared_ptr<Part>> GraphRunner::makePart(const PendingNodes& pending, const std::set<std::string>& frozen,
                                                       const Values& values) {
  Values known;
  for (const std::string& name : pending.reads)
    if (const auto it = values.find(name); it != values.end()) {
      KnownValue& value = known[name] = it->second;
      if (value.constant || !frozen.contains(name)) continue;
      // The part outlives this run, the caller's memory need not.
      for (Tensor& tensor : value.value.tensors) tensor = resized(tensor, tensor.type().shape().dims());
      value.constant = true;
    }
  ReferenceEvaluator evaluator;
  auto imported = onnx::importPart(context_.model, {.graph = graph_,
                                                    .opsets = opsets_,
                                                    .nodes = pending.nodes,
                                                    .known = known,
                                                    .evaluator = &evaluator,
                                                    .tolerance = context_.tolerance});
  if (!imported.ok()) {
    // Faults of the parts after this one, and of graphs that may never be run.
    Diagnostics faults = imported.diagnostics();
    onnx::reportFaultsWithoutTypes(context_.model, faults);
    return faults;
  }
  auto part = std::make_shared<Part>();
  if (!imported->freeze.empty()) {
    part->freeze.assign(imported->freeze.begin(), imported->freeze.end());
    return part;
  }
  for (auto& [name, value] : known)
    if (value.constant) part->held.insert({name, value});
  for (auto& [name, value] : imported->constants) part->constants[name] = {.value = std::move(value), .constant = true};

  std::vector<size_t> left;
  std::set<std::string> wanted;
  for (const Deferred& deferred : imported->deferred) {
    if (!live_[deferred.node]) continue;
    if (deferred.why == Deferred::Why::Alone) {
      part->alone.push_back(deferred.node);
      continue;
    }
    left.push_back(deferred.node);
    wanted.insert(deferred.values.begin(), deferred.values.end());
  }
  if (!left.empty()) {
    AGLOW_CHECK(left.size() < pending.nodes.size() || wanted != frozen, "a model is cut at the same place again");
    part->next = pendingOf(std::move(left), std::move(wanted));
  }

  if (imported->model.interface.outputs.empty()) return part;
  CompileOptions options = context_.compile;
  // A model that is cut meets many shapes; code for small pieces would seldom be used again. The steps of a loop would,
  // and so would what comes before the nodes that a model ends with.
  const bool isCut = pending.number > 0 || part->next != nullptr;
  if (isCut && depth_ == 0 && workOf(*imported->model.module->functions().front()) < kSmallWork)
    options.backend = kReferenceBackend;
  auto compiled = compileModule(std::move(imported->model.module), {std::move(imported->model.interface)}, options);
  if (!compiled.ok()) return compiled.diagnostics();
  if (context_.compiled) context_.compiled(*compiled);
  int64_t weights = 0;
  for (const Program& program : compiled->programs) weights += program.constantBytes();
  const int64_t runs = arenaBytes(compiled->programs) * std::max(context_.backend.contexts, 1);
  auto network = Network::load(*std::move(compiled), context_.backend);
  if (!network.ok()) return Diagnostics(network.error());
  part->counted = std::make_unique<CountedBytes>(context_.bytes, weights, runs);
  part->network = *std::move(network);
  return part;
}

Diagnosed<std::shared_ptr<Part>> GraphRunner::partFor(PendingNodes& pending, const Values& values) {
  while (true) {
    const std::set<std::string> frozen = [&] {
      const std::lock_guard lock(mutex_);
      return pending.frozen;
    }();
    auto part =
        context_.parts.findOrMake(keyOf(pending, frozen, values), [&] { return makePart(pending, frozen, values); });
    if (!part.ok() || (*part)->freeze.empty()) return part;
    const std::lock_guard lock(mutex_);
    pending.frozen.insert((*part)->freeze.begin(), (*part)->freeze.end());
    AGLOW_CHECK(pending.frozen != frozen, "a frozen value is asked for again");
  }
}

Status GraphRunner::runPart(Part& part, Values& values) const {
  if (part.network) {
    const auto valueOf = [&](const std::string& name) {
      const auto it = values.find(name);
      return it == values.end() ? nullptr : &it->second.value;
    };
    AGLOW_TRY(std::vector<ModelValue> outputs,
              part.network->run(0, valueOf, depth_ > 0 ? Network::OutputMemory::Reused : Network::OutputMemory::Fresh));
    const std::vector<Port>& ports = part.network->functions().front().outputs;
    for (size_t i = 0; i < ports.size(); ++i) values[ports[i].name] = {std::move(outputs[i]), false};
  }
  for (const auto& [name, value] : part.constants) values[name] = value;
  return {};
}

// ---------------------------------------------------------------- runs

Diagnosed<std::shared_ptr<Part>> GraphRunner::prepare(const Values& values) {
  PendingNodes& first = *pending_.front();
  return context_.parts.findOrMake(keyOf(first, {}, values), [&] { return makePart(first, {}, values); });
}

Diagnosed<std::shared_ptr<Network>> GraphRunner::whole(const Values& values) {
  PendingNodes& first = *pending_.front();
  auto part = partFor(first, values);
  if (!part.ok()) return part.diagnostics();
  const Part& made = **part;
  const std::shared_ptr<Network> none;
  if (!made.network || made.next != nullptr || !made.alone.empty()) return none;
  {
    const std::lock_guard lock(mutex_);
    if (!first.frozen.empty()) return none;
  }
  const std::vector<Port>& ports = made.network->functions().front().outputs;
  for (const onnx::ValueInfo& info : graph_.outputs) {
    const auto gives = [&](const Port& port) {
      return port.name == info.name && port.kind == Port::Kind::Tensor && port.labels == nullptr;
    };
    if (std::none_of(ports.begin(), ports.end(), gives)) return none;
  }
  return std::shared_ptr<Network>(*part, made.network.get());
}

Diagnosed<std::vector<ModelValue>> GraphRunner::run(Values values) {
  PendingNodes* pending = [&] {
    const std::lock_guard lock(mutex_);
    return pending_.front().get();
  }();
  while (pending != nullptr) {
    auto part = partFor(*pending, values);
    if (!part.ok()) return part.diagnostics();
    Part& current = **part;
    if (Status status = runPart(current, values); !status.ok()) return status.error();
    for (const size_t index : current.alone) {
      auto results = runAlone(index, values);
      if (!results.ok()) return Diagnostics(results.diagnostics()).at(onnx::placeOf(graph_.nodes[index]));
      const std::vector<std::string>& names = graph_.nodes[index].outputs;
      for (size_t i = 0; i < std::min(names.size(), results->size()); ++i)
        if (!names[i].empty()) values[names[i]] = {.value = std::move((*results)[i]), .constant = false};
    }
    pending = current.next;
    if (pending != nullptr)
      std::erase_if(values, [&](const auto& value) { return !pending->reads.contains(value.first); });
  }
  std::vector<ModelValue> outputs;
  for (const onnx::ValueInfo& info : graph_.outputs) {
    const KnownValue* value = find(info.name, values);
    if (value == nullptr) return onnx::uncomputedOutput(info.name);
    outputs.push_back(value->value);
  }
  return outputs;
}

}  // namespace aglow
