#include "dynamic/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/code/code_cache.h"
#include "import/onnx/faults.h"
#include "import/onnx/inputs.h"
#include "tensor/slices.h"

namespace aglow {

namespace {

constexpr size_t kMaxChecked = 4096;
constexpr size_t kMaxPrepared = 64;

using Inputs = std::map<std::string, ModelValue>;

std::string typesOf(const Inputs& inputs) {
  std::string text;
  for (const auto& [name, value] : inputs) {
    text += name;
    text += value.none ? '\1' : value.isSequence ? '\2' : '\3';
    for (const Tensor& tensor : value.tensors) text += tensor.type().text() + '\4';
    for (const StringTensor& tensor : value.strings) text += tensor.text() + '\4';
    for (const MapValue& map : value.maps) text += map.text() + '\4';
  }
  return text;
}

// Every choice of one size for each dimension.
Result<std::vector<std::map<std::string, int64_t>>> combinations(
    const std::map<std::string, std::vector<int64_t>>& prepared) {
  std::vector<std::map<std::string, int64_t>> all(1);
  for (const auto& [name, sizes] : prepared) {
    std::vector<std::map<std::string, int64_t>> next;
    for (const auto& chosen : all)
      for (const int64_t size : sizes) {
        next.push_back(chosen);
        next.back()[name] = size;
      }
    if (next.size() > kMaxPrepared)
      return Error{.code = Code::LimitReached,
                   .message = fmt::format("more than {} combinations of sizes to prepare", kMaxPrepared)};
    all = std::move(next);
  }
  return all;
}

// The declared shape with some symbolic dimensions replaced.
std::vector<int64_t> resizedDims(const onnx::TypeProto& declared, std::vector<int64_t> dims,
                                 const std::map<std::string, int64_t>& sizes) {
  for (size_t i = 0; i < std::min(dims.size(), declared.dims.size()); ++i)
    if (declared.dims[i].kind == onnx::Dim::Kind::Symbol)
      if (const auto it = sizes.find(declared.dims[i].symbol); it != sizes.end()) dims[i] = it->second;
  return dims;
}

bool mayWait(Code code) { return code == Code::NeedShape || code == Code::UnsupportedFeature; }

}  // namespace

std::vector<std::string> startThreads(BackendOptions& options) {
  std::vector<std::string> notes;
  options.pool = std::make_shared<ThreadPool>(options.threads);
  if (options.pool->threads() < options.threads)
    notes.push_back(fmt::format("the system gives {} of {} threads", options.pool->threads(), options.threads));
  if (auto refused = codegen::whyRefused(options.cache)) notes.push_back(*std::move(refused));
  return notes;
}

Session::Session(onnx::Model model, SessionOptions options)
    : options_(std::move(options)),
      context_(std::move(model), options_.compile, options_.backend, options_.maxParts),
      runner_(context_, context_.model.graph, context_.model.opsets) {
  context_.compiled = options_.compiled;
}

Diagnosed<std::unique_ptr<Session>> Session::open(onnx::Model model, SessionOptions options) {
  if (!options.backend.pool) options.backend.pool = std::make_shared<ThreadPool>(std::max(options.backend.threads, 1));
  if (!options.backend.weights) options.backend.weights = std::make_shared<TensorPool>();
  if (Diagnostics faults = options.compile.tolerance.judge(model); !faults.empty()) {
    onnx::reportFaultsWithoutTypes(model, faults);
    return faults;
  }
  if (model.graph.outputs.empty()) return Error{.code = Code::BadGraph, .message = "the graph has no outputs"};
  for (auto& [name, sizes] : options.prepared) std::sort(sizes.begin(), sizes.end());
  std::unique_ptr<Session> session(new Session(std::move(model), std::move(options)));
  const auto chosen = combinations(session->options_.prepared);
  if (!chosen.ok()) return chosen.error();
  for (const auto& dims : *chosen)
    if (auto prepared = session->prepare(dims, !dims.empty()); !prepared.ok()) return prepared.diagnostics();
  return session;
}

Diagnosed<Unit> Session::prepare(const std::map<std::string, int64_t>& dims, bool required) {
  const onnx::Graph& graph = context_.model.graph;
  onnx::ImportOptions sizes{.shapes = options_.compile.shapes,
                            .dims = options_.compile.dims,
                            .given = options_.compile.given,
                            .evaluator = nullptr,
                            .tolerance = options_.compile.tolerance};
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
  for (const auto& [name, value] : options_.compile.given) known[name] = {.value = value, .constant = true};
  const auto part = runner_.prepare(known);
  if (!part.ok()) return part.diagnostics();
  return Unit{};
}

Diagnostics Session::check(const Inputs& inputs) const {
  const onnx::Graph& graph = context_.model.graph;
  onnx::ImportOptions options{.shapes = {},
                              .dims = options_.compile.dims,
                              .given = inputs,
                              .evaluator = nullptr,
                              .tolerance = options_.compile.tolerance};
  for (const auto& [name, shape] : options_.compile.shapes)
    if (!inputs.contains(name)) options.shapes[name] = shape;
  for (const auto& [name, value] : options_.compile.given) options.given.try_emplace(name, value);
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
  for (const auto& [name, shape] : options_.compile.shapes)
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
  for (const auto& [name, value] : options_.compile.given)
    known.try_emplace(name, onnx::KnownValue{.value = value, .constant = true});
  return known;
}

Diagnosed<std::vector<ModelValue>> Session::run(const Inputs& inputs) {
  if (options_.pad && !options_.prepared.empty()) return runPadded(inputs);
  auto known = knownOf(inputs);
  if (!known.ok()) return known.diagnostics();
  return runner_.run(*std::move(known));
}

Diagnosed<std::vector<ModelValue>> Session::runPadded(const Inputs& inputs) {
  const onnx::Graph& graph = context_.model.graph;
  if (Diagnostics faults = check(inputs); !faults.empty()) return faults;
  const std::map<std::string, int64_t> sizes =
      onnx::resolveInputs(graph, {.shapes = {}, .dims = options_.compile.dims, .given = inputs, .evaluator = nullptr})
          .sizes;
  std::map<std::string, int64_t> padded;
  for (const auto& [name, prepared] : options_.prepared) {
    const auto size = sizes.find(name);
    if (size == sizes.end()) continue;
    const auto next = std::lower_bound(prepared.begin(), prepared.end(), size->second);
    if (next != prepared.end() && *next != size->second) padded[name] = *next;
  }
  Inputs filled = inputs;
  for (const onnx::ValueInfo& info : graph.inputs)
    if (const auto it = filled.find(info.name); it != filled.end() && it->second.isTensor()) {
      const Tensor& tensor = it->second.tensor();
      const std::vector<int64_t>& dims = tensor.type().shape().dims();
      if (std::vector<int64_t> to = resizedDims(info.type, dims, padded); to != dims)
        it->second = ModelValue::of(resized(tensor, to));
    }
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
  std::map<std::string, int64_t> back;
  for (const auto& [name, size] : padded) back[name] = sizes.at(name);
  for (size_t i = 0; i < outputs->size(); ++i) {
    ModelValue& value = (*outputs)[i];
    if (!value.isTensor()) continue;
    const std::vector<int64_t>& dims = value.tensor().type().shape().dims();
    if (std::vector<int64_t> to = resizedDims(graph.outputs[i].type, dims, back); to != dims)
      value = ModelValue::of(resized(value.tensor(), to));
  }
  return outputs;
}

}  // namespace aglow
