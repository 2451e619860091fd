// A model as Python sees it: a session, or the programs of a text form.
#include "python/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compile/packages.h"
#include "compile/text_files.h"
#include "dynamic/whole_model.h"
#include "graph/text.h"
#include "import/model_file.h"
#include "import/onnx/export.h"
#include "import/onnx/model_writer.h"
#include "import/onnx/tensor_data.h"
#include "inst/text.h"

namespace aglow::python {

namespace {

std::string kindOf(const onnx::TypeProto& type) {
  using Kind = onnx::TypeProto::Kind;
  if (type.kind == Kind::None || (type.kind == Kind::Tensor && type.elemType == 0)) return "any";
  if (type.kind != Kind::Tensor) return "";
  if (type.elemType == onnx::kStringType) return "string";
  const std::optional<ElemKind> kind = elemKindByOnnx(type.elemType);
  return kind ? std::string(elemName(*kind)) : "";
}

Spec specOf(const onnx::ValueInfo& info) {
  Spec spec{.name = info.name, .type = onnx::describe(info.type)};
  const onnx::TypeProto* type = &info.type;
  spec.isOptional = type->kind == onnx::TypeProto::Kind::Optional;
  if (spec.isOptional) type = type->elem.get();
  spec.isSequence = type->kind == onnx::TypeProto::Kind::Sequence;
  if (spec.isSequence) type = type->elem.get();
  if (type->kind == onnx::TypeProto::Kind::Map) {
    spec.keys = type->elemType == onnx::kStringType ? "string" : "i64";
    type = type->elem.get();
  }
  spec.kind = kindOf(*type);
  spec.isRanked = type->hasShape;
  spec.dims = type->dims;
  return spec;
}

void setType(Spec& spec, const Type& type) {
  spec.kind = std::string(elemName(type.kind()));
  for (const int64_t dim : type.shape().dims())
    spec.dims.push_back({.kind = onnx::Dim::Kind::Value, .value = dim, .symbol = {}});
}

Spec specOf(const std::string& name, const Type& type) {
  Spec spec{.name = name, .type = type.text(), .kind = {}};
  setType(spec, type);
  return spec;
}

Spec specOf(const Port& port) {
  if (port.kind != Port::Kind::Sequence) return specOf(port.name, port.type);
  Spec spec{.name = port.name, .type = "sequence", .kind = "any"};
  spec.isSequence = true;
  spec.isRanked = false;
  if (!port.items.empty()) spec.kind = std::string(elemName(port.items.front().type.kind()));
  return spec;
}

}  // namespace

Diagnosed<std::unique_ptr<Model>> Model::read(const std::string& path, const std::string& initPath) {
  auto model = std::make_unique<Model>();
  model->path_ = path;
  if (isWhole(path)) {
    // As far as it has to go to know its interface, and no further.
    CompileOptions options;
    if (!isPackage(path)) options.stopAfter = path.ends_with(".graph") ? "import" : "memory";
    auto compiled = compileTextFile(path, options);
    if (!compiled.ok()) return compiled.diagnostics();
    model->describe(*compiled);
    if (isPackage(path)) model->package_ = *std::move(compiled);
    return model;
  }
  auto file = readModelFile(path, initPath);
  if (!file.ok()) return file.error();
  model->model_ = *std::move(file);
  model->describe(model->model_->graph);
  return model;
}

Diagnosed<std::unique_ptr<Model>> Model::parse(const SharedBytes& file, const SharedBytes* init) {
  auto parsed = parseModelFile(file, {}, init);
  if (!parsed.ok()) return parsed.error();
  auto model = std::make_unique<Model>();
  model->model_ = *std::move(parsed);
  model->describe(model->model_->graph);
  return model;
}

Diagnosed<std::unique_ptr<Model>> Model::ofText(TextForm form) {
  CompileOptions options;
  options.stopAfter = form.isProgram() ? "memory" : "import";
  auto compiled = compileText(form, options);
  if (!compiled.ok()) return compiled.diagnostics();
  auto model = std::make_unique<Model>();
  model->describe(*compiled);
  model->form_ = std::move(form);
  return model;
}

void Model::describe(const Compilation& compiled) {
  for (const Interface& interface : compiled.interfaces) {
    FunctionSpec& function = functions_.emplace_back(FunctionSpec{.name = interface.function});
    for (const Port& port : interface.inputs) function.inputs.push_back(specOf(port));
    for (const Port& port : interface.outputs) function.outputs.push_back(specOf(port));
  }
}

void Model::describe(const onnx::Graph& graph) {
  FunctionSpec& function = functions_.emplace_back(FunctionSpec{.name = "main"});
  for (const onnx::ValueInfo& info : graph.inputs) {
    Spec& spec = function.inputs.emplace_back(specOf(info));
    for (const onnx::TensorProto& tensor : graph.initializers) spec.hasDefault |= tensor.name == info.name;
    for (const onnx::SparseTensorProto& tensor : graph.sparseInitializers)
      spec.hasDefault |= tensor.values.name == info.name;
  }
  for (const onnx::ValueInfo& info : graph.outputs) function.outputs.push_back(specOf(info));
}

Diagnostics Model::placed(const Diagnostics& faults) const {
  return path_.empty() ? faults : Diagnostics(faults).at(path_);
}

std::vector<std::string> Model::takeWarnings() {
  const std::lock_guard lock(hearing_);
  return std::exchange(warnings_, {});
}

Diagnosed<Unit> Model::open(SessionOptions options) {
  options.import.tolerance.warn = onnx::onceEach([this](const onnx::Departure& departure) {
    if (departure.silent) return;
    const std::lock_guard lock(hearing_);
    warnings_.push_back(departure.text(path_));
  });
  options_ = options;
  if (!model_) return openText(options);
  auto session = Session::open(*model_, std::move(options));
  if (!session.ok()) return placed(session.diagnostics());
  session_ = *std::move(session);
  return Unit{};
}

Diagnosed<WatchedModel::CompileFor> Model::compiler() const {
  if (package_)
    return Error{.code = Code::Usage, .message = "a package is compiled: profile the model that it was made from"};
  return WatchedModel::CompileFor([this](const CompileOptions& how, const onnx::ImportOptions& sizes) {
    SessionOptions options;
    options.compile = how;
    options.import = sizes;
    return compileWhole(options);
  });
}

Diagnosed<std::unique_ptr<Profiler>> Model::profiler(const SessionOptions& options) const {
  auto compile = compiler();
  if (!compile.ok()) return compile.diagnostics();
  return std::make_unique<Profiler>(*std::move(compile), options.compile, options.import, options.backend);
}

Diagnosed<Unit> Model::openText(const SessionOptions& options) {
  const bool opened = package_ && options.compile.backend != kReferenceBackend;
  auto compiled = opened ? Diagnosed<Compilation>(*std::exchange(package_, {})) : compileWhole(options);
  if (!compiled.ok()) return compiled.diagnostics();
  auto network = Network::load(*std::move(compiled), options.backend);
  if (!network.ok()) return network.error();
  network_ = *std::move(network);
  return Unit{};
}

Diagnosed<Model::Whole> Model::whole(const std::string& function, const Inputs& inputs) {
  if (network_) {
    const auto number = network_->find(function);
    if (!number.ok()) return placed(number.error());
    return Whole{network_, *number};
  }
  auto network = session_->whole(inputs);
  if (!network.ok()) return placed(network.diagnostics());
  return Whole{*std::move(network), 0};
}

Diagnosed<Unit> Model::run(const Whole& whole, std::span<const TensorRef> inputs, std::span<const TensorRef> outputs) {
  const Status ran =
      session_ ? session_->run(*whole.network, inputs, outputs) : whole.network->run(whole.function, inputs, outputs);
  if (!ran.ok()) return placed(ran.error());
  return Unit{};
}

Diagnosed<std::vector<ModelValue>> Model::run(const std::string& function, const Inputs& inputs) {
  if (!model_) return runText(function, inputs);
  auto outputs = session_->run(inputs);
  if (!outputs.ok()) return placed(outputs.diagnostics());
  return outputs;
}

Diagnosed<std::vector<ModelValue>> Model::runText(const std::string& function, const Inputs& inputs) {
  const auto number = network_->find(function);
  if (!number.ok()) return placed(number.error());
  Inputs typed;
  for (const Port& port : network_->functions()[*number].inputs)
    if (const auto it = inputs.find(port.name); it != inputs.end())
      typed[port.name] =
          it->second.isTensor() ? ModelValue::of(withScales(it->second.tensor(), port.type)) : it->second;
  auto outputs = network_->run(*number, valuesIn(typed));
  if (!outputs.ok()) return placed(outputs.error());
  return *std::move(outputs);
}

std::vector<Spec> Model::states() const {
  std::vector<Spec> specs;
  if (network_)
    for (const Binding& binding : network_->states()) specs.push_back(specOf(binding.name, binding.type));
  return specs;
}

Result<size_t> Model::stateIndex(const std::string& name) const {
  const size_t index = network_ ? network_->findState(name) : 0;
  if (network_ && index < network_->states().size()) return index;
  return Error{.code = Code::BadBinding, .message = fmt::format("the model has no state '{}'", name)};
}

Diagnosed<ModelValue> Model::state(const std::string& name) {
  const auto index = stateIndex(name);
  if (!index.ok()) return placed(index.error());
  auto value = network_->state(*index);
  if (!value.ok()) return placed(value.error());
  return ModelValue::of(*std::move(value));
}

Diagnosed<Unit> Model::setState(const std::string& name, const ModelValue& value) {
  const auto index = stateIndex(name);
  if (!index.ok()) return placed(index.error());
  const Tensor tensor = withScales(value.tensor(), network_->states()[*index].type);
  if (const Status written = network_->setState(*index, tensor.ref()); !written.ok()) return placed(written.error());
  return Unit{};
}

void Model::resetState() {
  if (network_) network_->resetState();
}

Diagnosed<Compilation> Model::compileWhole(const SessionOptions& options) const {
  if (model_) return compileModel(*model_, options.compile, options.import);
  return form_ ? compileText(*form_, options.compile) : compileTextFile(path_, options.compile);
}

// As far as the options say, which has to be where there is a graph, or a program.
Diagnosed<Compilation> Model::compiledTo(const SessionOptions& options, bool onProgram) const {
  auto result = compileWhole(options);
  if (!result.ok()) return model_ ? placed(result.diagnostics()) : result.diagnostics();
  if (onProgram == (result->module == nullptr)) return result;
  return Error{.code = Code::Usage,
               .message = fmt::format("after '{}' there is {}", options.compile.stopAfter,
                                      onProgram ? "a graph, and no program yet" : "a program, and no graph any more"),
               .hint = fmt::format("{}(after='{}')", onProgram ? "graph" : "program", options.compile.stopAfter)};
}

Diagnosed<std::string> Model::text(const SessionOptions& options, bool onProgram) const {
  auto result = compiledTo(options, onProgram);
  if (!result.ok()) return result.diagnostics();
  return onProgram ? print(result->programs) : print(*result->module);
}

Diagnosed<Unit> Model::exportTo(const std::string& path, const SessionOptions& options, bool externalData) const {
  auto result = compiledTo(options, false);
  if (!result.ok()) return result.diagnostics();
  const auto chosen = chooseFunction(result->functionNames(), {});
  if (!chosen.ok()) return placed(chosen.error());
  const auto model = onnx::exportModel(*result->module->functions()[*chosen]);
  if (!model.ok()) return placed(model.error());
  if (const Status written = onnx::writeModel(path, *model, {.external = externalData}); !written.ok())
    return written.error();
  return Unit{};
}

}  // namespace aglow::python
