#include "dynamic/model_source.h"

#include <algorithm>

#include "compile/packages.h"
#include "compile/text_files.h"
#include "dynamic/whole_model.h"
#include "import/model_file.h"
#include "import/onnx/tensor_data.h"
#include "runtime/device.h"
#include "runtime/module_source.h"

namespace aglow {

namespace {

PortSpec specOf(const onnx::ValueInfo& info) {
  using Kind = onnx::TypeProto::Kind;
  PortSpec spec{.name = info.name};
  spec.text = onnx::describe(info.type);
  const onnx::TypeProto* type = &info.type;
  if (type->kind == Kind::Optional) {
    spec.hasDefault = true;
    type = type->elem.get();
  }
  if (type->kind != Kind::Tensor && type->kind != Kind::None) {
    spec.holds = PortSpec::Holds::Other;
    spec.hasKind = spec.hasRank = false;
    return spec;
  }
  const std::optional<ElemKind> kind = elemKindByOnnx(type->elemType);
  spec.hasKind = kind.has_value() || type->elemType == onnx::kStringType;
  if (kind) spec.kind = *kind;
  if (type->elemType == onnx::kStringType) spec.holds = PortSpec::Holds::Strings;
  spec.hasRank = type->hasShape;
  for (const onnx::Dim& dim : type->dims)
    spec.dims.push_back({.size = dim.kind == onnx::Dim::Kind::Value ? dim.value : OpenDim::kOpen,
                         .symbol = dim.kind == onnx::Dim::Kind::Symbol ? dim.symbol : std::string()});
  return spec;
}

// By its shape; 0 of what is no tensor of numbers, which a run will find.
int64_t bytesOf(const onnx::TensorProto& tensor) {
  const std::optional<ElemKind> kind = elemKindByOnnx(tensor.dataType);
  const auto shape = Shape::create(tensor.dims);
  return kind && shape.ok() ? Type(*kind, *shape).bytes() : 0;
}

class LoadedSession : public LoadedPart {
public:
  explicit LoadedSession(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Outputs run(const Values& inputs) override { return session_->run(inputs); }
  int64_t bytes() const override { return session_->bytes(); }

private:
  std::unique_ptr<Session> session_;
};

class CompiledSession : public CompiledPart {
public:
  CompiledSession(std::shared_ptr<const onnx::Model> model, SessionOptions options, std::string backend)
      : model_(std::move(model)), options_(std::move(options)) {
    options_.compile.backend = std::move(backend);
  }

  Diagnosed<std::unique_ptr<LoadedPart>> load(const BackendOptions& backend) const override {
    SessionOptions options = options_;
    options.backend = backend;
    auto session = Session::open(*model_, std::move(options));
    if (!session.ok()) return session.diagnostics();
    return std::unique_ptr<LoadedPart>(std::make_unique<LoadedSession>(*std::move(session)));
  }

private:
  std::shared_ptr<const onnx::Model> model_;
  SessionOptions options_;
};

class SessionSource : public NetworkSource {
public:
  SessionSource(onnx::Model model, SessionOptions options)
      : spec_(aglow::specOf(model.graph)),
        model_(std::make_shared<const onnx::Model>(std::move(model))),
        options_(std::move(options)) {
    PartCost cost;
    for (const onnx::TensorProto& tensor : model_->graph.initializers) cost.constantBytes += bytesOf(tensor);
    graph_ = wholeGraph(spec_, cost, false);
  }

  const NetworkSpec& spec() const override { return spec_; }
  const PartGraph& graph() const override { return graph_; }
  Diagnosed<std::shared_ptr<CompiledPart>> compile(size_t /*part*/, const std::string& backend) const override {
    return std::shared_ptr<CompiledPart>(std::make_shared<CompiledSession>(model_, options_, backend));
  }

private:
  NetworkSpec spec_;
  std::shared_ptr<const onnx::Model> model_;
  SessionOptions options_;
  PartGraph graph_;
};

}  // namespace

NetworkSpec specOf(const onnx::Graph& graph) {
  NetworkSpec spec;
  const auto hasInitializer = [&](const std::string& name) {
    return std::any_of(graph.initializers.begin(), graph.initializers.end(),
                       [&](const onnx::TensorProto& tensor) { return tensor.name == name; });
  };
  for (const onnx::ValueInfo& info : graph.inputs) {
    spec.inputs.push_back(specOf(info));
    spec.inputs.back().hasDefault |= hasInitializer(info.name);
  }
  for (const onnx::ValueInfo& info : graph.outputs) spec.outputs.push_back(specOf(info));
  return spec;
}

std::shared_ptr<const NetworkSource> sourceOf(onnx::Model model, SessionOptions options) {
  return std::make_shared<SessionSource>(std::move(model), std::move(options));
}

Diagnosed<std::shared_ptr<const NetworkSource>> openSource(const std::string& path, SessionOptions options) {
  if (!isWhole(path)) {
    auto model = readModelFile(path);
    if (!model.ok()) return std::move(model).error();
    return sourceOf(*std::move(model), std::move(options));
  }
  // A graph is compiled for whatever devices there are; instructions and packages are for one kind.
  if (path.ends_with(".graph")) return openParts(path, std::move(options), {.parts = 1, .portable = true});
  auto compiled = compileTextFile(path, options.compile);
  if (!compiled.ok()) return compiled.diagnostics();
  auto source = sourceOf(*std::move(compiled));
  if (!source.ok()) return std::move(source).error().at(path);
  return *std::move(source);
}

Diagnosed<std::shared_ptr<const NetworkSource>> openParts(const std::string& path, SessionOptions options,
                                                          const PartitionRequest& request) {
  if (options.compile.backend.empty() && !request.devices.empty())
    options.compile.backend = request.devices.front().backend;
  CompileOptions upTo = options.compile;
  upTo.stopAfter = partitionPhase(request);
  auto graph = compileFile(path, upTo, options.import);
  if (!graph.ok()) return graph.diagnostics();
  if (graph->module == nullptr)
    return Error{
        .code = Code::UnsupportedFeature, .message = "it has no graph any more, and is not cut", .where = path};
  auto made = partition(*graph, request, options.compile);
  if (!made.ok()) return std::move(made).error().at(path);
  const auto function = chooseFunction(graph->functionNames(), {});
  return sourceOf(*std::move(made), graph->interfaces[*function], options.compile);
}

Diagnosed<Unit> addModel(HostManager& host, const std::string& name, const std::string& path,
                         const SessionOptions& options, const NetworkOptions& network, PartitionRequest request) {
  const bool asked = request.parts > 1 || !request.byHand.empty() || request.criterion == PartitionCriterion::Support;
  Diagnostics whole;
  if (!asked) {
    auto source = openSource(path, options);
    if (!source.ok()) return source.diagnostics();
    auto added = host.addNetwork(name, *source, network);
    if (added.ok() || added.diagnostics().errors().front().code != Code::TooLarge) return added;
    whole = added.diagnostics();
  }
  const auto allowed = [&](const DeviceManager& device) {
    return network.devices.empty() ||
           std::find(network.devices.begin(), network.devices.end(), device.name()) != network.devices.end();
  };
  for (const auto& device : host.devices())
    if (device->healthy() && allowed(*device)) {
      request.devices.push_back(partitionDeviceOf(device->spec()));
      request.devices.back().memory = std::max<int64_t>(device->memoryFree(), 1);
    }
  // Backends may lay weights out in more bytes than they have: then smaller parts are tried.
  auto source = openParts(path, options, request);
  for (int attempt = 0; source.ok(); ++attempt) {
    auto added = host.addNetwork(name, *source, network);
    const bool smaller = attempt < 3 && request.byHand.empty() && request.parts == 0;
    if (added.ok() || !smaller || added.diagnostics().errors().front().code != Code::TooLarge) return added;
    for (PartitionDevice& device : request.devices) device.memory = std::max<int64_t>(device.memory * 2 / 3, 1);
    source = openParts(path, options, request);
    if (!source.ok()) return added;
  }
  // What keeps it from being cut matters less than what keeps it from being whole.
  if (asked) return source.diagnostics();
  for (const Error& error : source.diagnostics().errors()) whole.add(error);
  return whole;
}

}  // namespace aglow
