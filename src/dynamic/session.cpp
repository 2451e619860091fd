#include "dynamic/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/faults.h"
#include "import/onnx/inputs.h"
#include "runtime/key.h"
#include "runtime/threads.h"
#include "support/machine.h"

namespace aglow {

namespace {

constexpr size_t kMaxChecked = 4096;

using Inputs = std::map<std::string, ModelValue>;

std::string typesOf(const Inputs& inputs) {
  Key key;
  for (const auto& [name, value] : inputs) {
    key.add(name);
    key.add(value, Key::Of::Type);
    for (const StringTensor& tensor : value.strings) key.add(tensor.text());
    for (const MapValue& map : value.maps) key.add(map.text());
  }
  return key.bytes();
}

// The names of the dimensions, where they have some.
std::vector<std::string> symbolsOf(const onnx::TypeProto& declared) {
  std::vector<std::string> names;
  for (const onnx::Dim& dim : declared.dims)
    names.push_back(dim.kind == onnx::Dim::Kind::Symbol ? dim.symbol : std::string());
  return names;
}

// Parts have no more callers than the session lets in.
BackendOptions forParts(BackendOptions options) {
  options.queue = options.contexts;
  return options;
}

bool mayWait(Code code) { return code == Code::NeedShape || code == Code::UnsupportedFeature; }

}  // namespace

Session::Session(onnx::Model model, SessionOptions options, PreparedSizes prepared)
    : options_(std::move(options)),
      prepared_(std::move(prepared)),
      context_(std::move(model), options_.import.tolerance, options_.compile, forParts(options_.backend),
               options_.maxParts),
      runner_(context_, context_.model.graph, context_.model.opsets),
      turnstile_(static_cast<size_t>(options_.backend.contexts)) {
  context_.compiled = options_.compiled;
}

Diagnosed<std::unique_ptr<Session>> Session::open(onnx::Model model, SessionOptions options) {
  if (!options.backend.pool) startThreads(options.backend);
  if (options.backend.contexts == 0) options.backend.contexts = defaultContexts();
  if (!options.backend.weights) options.backend.weights = std::make_shared<TensorPool>();
  if (Diagnostics faults = options.import.tolerance.judge(model); !faults.empty()) {
    onnx::reportFaultsWithoutTypes(model, faults);
    return faults;
  }
  if (model.graph.outputs.empty()) return Error{.code = Code::BadGraph, .message = "the graph has no outputs"};
  auto prepared = PreparedSizes::create(options.prepared);
  if (!prepared.ok()) return prepared.error();
  std::unique_ptr<Session> session(new Session(std::move(model), std::move(options), *std::move(prepared)));
  for (const NamedSizes& dims : session->prepared_.combinations())
    if (auto ready = session->prepare(dims); !ready.ok()) return ready.diagnostics();
  return session;
}

Diagnosed<Unit> Session::prepare(const NamedSizes& dims) {
  const onnx::Graph& graph = context_.model.graph;
  const bool required = !dims.empty();
  onnx::ImportOptions sizes = options_.import;
  for (const auto& [name, size] : dims) sizes.dims[name] = size;
  const onnx::InputTypes types = onnx::resolveInputs(graph, sizes);
  if (!types.diagnostics.empty()) {
    const auto& errors = types.diagnostics.errors();
    const bool waits = std::all_of(errors.begin(), errors.end(), [](const Error& e) { return mayWait(e.code); });
    Diagnostics faults = waits && !required ? Diagnostics() : types.diagnostics;
    onnx::reportFaultsWithoutTypes(context_.model, faults);
    if (!faults.empty()) return faults;
    return Unit{};
  }
  onnx::KnownValues known;
  // Only the types count; memory that nobody writes to is not there.
  for (const auto& [name, type] : types.types) known[name] = {.value = ModelValue::of(Tensor(type)), .constant = false};
  for (const auto& [name, value] : options_.import.given) known[name] = {.value = value, .constant = true};
  const auto part = runner_.prepare(known);
  if (!part.ok()) return part.diagnostics();
  return Unit{};
}

Diagnostics Session::check(const Inputs& inputs) const {
  const onnx::Graph& graph = context_.model.graph;
  onnx::ImportOptions options{.shapes = {},
                              .dims = options_.import.dims,
                              .given = inputs,
                              .evaluator = nullptr,
                              .tolerance = options_.import.tolerance};
  for (const auto& [name, shape] : options_.import.shapes)
    if (!inputs.contains(name)) options.shapes[name] = shape;
  for (const auto& [name, value] : options_.import.given) options.given.try_emplace(name, value);
  const auto initialized = [&](const std::string& name) {
    return std::any_of(graph.initializers.begin(), graph.initializers.end(),
                       [&](const auto& t) { return t.name == name; }) ||
           std::any_of(graph.sparseInitializers.begin(), graph.sparseInitializers.end(),
                       [&](const auto& t) { return t.values.name == name; });
  };
  Diagnostics missing;
  for (const onnx::ValueInfo& info : graph.inputs)
    if (!options.given.contains(info.name) && !initialized(info.name))
      missing.add({.code = Code::MissingBinding,
                   .message = fmt::format("input '{}' ({}) was not given", info.name, onnx::describe(info.type)),
                   .where = {},
                   .hint = fmt::format("--input '{}=FILE.{}'{}{}", info.name,
                                       info.type.kind == onnx::TypeProto::Kind::Map ? "json" : "npy",
                                       info.hint.empty() ? "" : "; ", info.hint)});
  // Sizes are open because of missing inputs; nothing is gained by telling that too.
  const onnx::InputTypes resolved = onnx::resolveInputs(graph, options);
  Diagnostics faults;
  for (const Error& fault : resolved.diagnostics.errors())
    if (missing.empty() || !mayWait(fault.code)) faults.add(fault);
  for (const Error& fault : missing.errors()) faults.add(fault);
  for (const auto& [name, shape] : options_.import.shapes)
    if (const auto it = inputs.find(name);
        it != inputs.end() && it->second.isTensor() && it->second.tensor().type().shape().dims() != shape)
      faults.add({.code = Code::BadBinding,
                  .message = fmt::format("input '{}' has shape {}; expected {}, as --shape says", name,
                                         it->second.tensor().type().shape().text(), Shape(shape).text())});
  return faults;
}

Diagnosed<onnx::KnownValues> Session::knownOf(const Inputs& inputs) {
  const std::string types = typesOf(inputs);
  const bool isNew = [&] {
    const std::lock_guard lock(mutex_);
    return !checked_.contains(types);
  }();
  if (isNew) {
    Diagnostics faults = check(inputs);
    if (!faults.empty()) return faults;
    const std::lock_guard lock(mutex_);
    if (checked_.size() >= kMaxChecked) checked_.clear();
    checked_.insert(types);
  }
  onnx::KnownValues known;
  for (const auto& [name, value] : inputs) known[name] = {.value = value, .constant = false};
  for (const auto& [name, value] : options_.import.given)
    known.try_emplace(name, onnx::KnownValue{.value = value, .constant = true});
  return known;
}

Diagnosed<std::vector<ModelValue>> Session::run(const Inputs& inputs) {
  const auto queue = static_cast<size_t>(std::max(options_.backend.queue, 0));
  const Turn turn(turnstile_, queue);
  if (!turn) return busy({.contexts = turnstile_.places(), .queue = queue});
  if (options_.pad && !prepared_.empty()) return runPadded(inputs);
  auto known = knownOf(inputs);
  if (!known.ok()) return known.diagnostics();
  return runner_.run(*std::move(known));
}

Diagnosed<std::shared_ptr<Network>> Session::whole(const Inputs& inputs) {
  if (options_.pad && !prepared_.empty()) return std::shared_ptr<Network>();
  auto known = knownOf(inputs);
  if (!known.ok()) return known.diagnostics();
  return runner_.whole(*known);
}

Status Session::run(Network& whole, std::span<const TensorRef> inputs, std::span<const TensorRef> outputs) {
  const auto queue = static_cast<size_t>(std::max(options_.backend.queue, 0));
  const Turn turn(turnstile_, queue);
  if (!turn) return busy({.contexts = turnstile_.places(), .queue = queue});
  return whole.run(0, inputs, outputs);
}

Diagnosed<std::vector<ModelValue>> Session::runPadded(const Inputs& inputs) {
  const onnx::Graph& graph = context_.model.graph;
  if (Diagnostics faults = check(inputs); !faults.empty()) return faults;
  const NamedSizes sizes =
      onnx::resolveInputs(graph, {.shapes = {}, .dims = options_.import.dims, .given = inputs, .evaluator = nullptr})
          .sizes;
  const NamedSizes padded = prepared_.padded(sizes);
  Inputs filled = inputs;
  for (const onnx::ValueInfo& info : graph.inputs)
    if (const auto it = filled.find(info.name); it != filled.end() && it->second.isTensor())
      it->second = ModelValue::of(withSizes(it->second.tensor(), symbolsOf(info.type), padded));
  for (const onnx::ValueInfo& info : graph.outputs) {
    const bool open = info.type.kind != onnx::TypeProto::Kind::Tensor || !info.type.hasShape ||
                      std::any_of(info.type.dims.begin(), info.type.dims.end(),
                                  [](const onnx::Dim& dim) { return dim.kind == onnx::Dim::Kind::Unknown; });
    if (open && !padded.empty())
      return Error{
          .code = Code::UnsupportedFeature,
          .message = fmt::format("output '{}' is declared as {}, which does not say where the padding is in it",
                                 info.name, onnx::describe(info.type)),
          .where = {},
          .hint = "run without padding, or name the sizes of the model's outputs"};
  }
  auto known = knownOf(filled);
  if (!known.ok()) return known.diagnostics();
  auto outputs = runner_.run(*std::move(known));
  if (!outputs.ok()) return outputs;
  NamedSizes back;
  for (const auto& [name, size] : padded) back[name] = sizes.at(name);
  for (size_t i = 0; i < outputs->size(); ++i)
    if (ModelValue& value = (*outputs)[i]; value.isTensor())
      value = ModelValue::of(withSizes(value.tensor(), symbolsOf(graph.outputs[i].type), back));
  return outputs;
}

}  // namespace aglow
