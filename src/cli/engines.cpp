// Backends as engines: a session of the model with the outputs asked for, and of the nodes that these need.
#include "cli/engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "import/onnx/parts.h"

namespace aglow::cli {

namespace {

// The graph with these outputs alone. Of the outputs it has already, the declarations stay.
onnx::Graph cutTo(const onnx::Graph& graph, const std::vector<std::string>& names) {
  onnx::Graph cut = graph;
  cut.outputs.clear();
  cut.nodes.clear();
  for (const std::string& name : names) {
    const auto it =
        std::find_if(graph.outputs.begin(), graph.outputs.end(), [&](const auto& o) { return o.name == name; });
    cut.outputs.push_back(it != graph.outputs.end() ? *it : onnx::ValueInfo{.name = name, .type = {}});
  }
  std::set<std::string> needed(names.begin(), names.end());
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto& outputs = node->outputs;
    if (std::none_of(outputs.begin(), outputs.end(), [&](const std::string& o) { return needed.contains(o); }))
      continue;
    for (std::string& name : onnx::namesRead(*node)) needed.insert(std::move(name));
    cut.nodes.push_back(*node);
  }
  std::reverse(cut.nodes.begin(), cut.nodes.end());
  return cut;
}

class BackendEngine : public Engine {
public:
  BackendEngine(std::string name, const onnx::Model& model, SessionOptions options)
      : Engine(std::move(name)), model_(model), options_(std::move(options)) {
    for (const onnx::ValueInfo& info : model.graph.outputs) outputs_.push_back(info.name);
  }

  Diagnosed<std::vector<ModelValue>> values(const std::vector<std::string>& names, const ModelValues& inputs) override {
    if (!session_ || names != names_) {
      session_.reset();
      onnx::Model model = model_;
      if (names != outputs_) model.graph = cutTo(model_.graph, names);
      auto opened = Session::open(std::move(model), options_);
      if (!opened.ok()) return opened.diagnostics();
      session_ = *std::move(opened);
      names_ = names;
    }
    return session_->run(inputs);
  }

  std::unique_ptr<Engine> forModel(const onnx::Model& model) const override {
    SessionOptions options = options_;
    options.import.shapes.clear();  // of the other model's inputs
    options.import.dims.clear();
    return std::make_unique<BackendEngine>(name(), model, std::move(options));
  }

private:
  const onnx::Model& model_;
  SessionOptions options_;
  std::vector<std::string> outputs_, names_;
  std::unique_ptr<Session> session_;  // for names_
};

class PackageEngine : public Engine {
public:
  PackageEngine(std::string name, std::unique_ptr<Network> network, size_t function)
      : Engine(std::move(name)), network_(std::move(network)), function_(function) {}

  Diagnosed<std::vector<ModelValue>> values(const std::vector<std::string>& names, const ModelValues& inputs) override {
    ModelValues typed = inputs;
    const Interface& interface = network_->functions()[function_];
    for (const Port& port : interface.inputs)
      if (const auto it = typed.find(port.name); it != typed.end() && it->second.isTensor())
        it->second = ModelValue::of(withScales(it->second.tensor(), port.type));
    auto outputs = network_->run(function_, valuesIn(typed));
    if (!outputs.ok()) return outputs.error();
    std::vector<ModelValue> values;
    for (const std::string& name : names)
      for (size_t i = 0; i < interface.outputs.size(); ++i)
        if (interface.outputs[i].name == name) values.push_back((*outputs)[i]);
    AGLOW_CHECK(values.size() == names.size(), "a package is asked for values of nodes");
    return values;
  }

private:
  std::unique_ptr<Network> network_;
  size_t function_;
};

Result<Compilation> compiledPackage(const RunRequest& request, const std::string& backend) {
  ModelOptions chosen = request.model;
  chosen.backend = backend;
  AGLOW_TRY(const ParsedOptions parsed, request.parse(chosen));
  auto compiled = compileTextFile(request.model.model, parsed.compile);
  if (!compiled.ok()) return compiled.diagnostics().errors().front();
  return *std::move(compiled);
}

onnx::TypeProto declared(const Port& port) {
  onnx::TypeProto type;
  if (port.kind == Port::Kind::Sequence) {
    type.kind = onnx::TypeProto::Kind::Sequence;
    type.elem = std::make_shared<onnx::TypeProto>(
        port.items.empty() ? onnx::TypeProto{.kind = onnx::TypeProto::Kind::Tensor} : declared(port.items.front()));
    type.elem->hasShape = false;
    type.elem->dims.clear();
    return type;
  }
  type.kind = onnx::TypeProto::Kind::Tensor;
  type.elemType = elemInfo(storageKind(port.type.kind())).onnx;
  type.hasShape = true;
  for (const int64_t size : port.type.shape().dims())
    type.dims.push_back({.kind = onnx::Dim::Kind::Value, .value = size, .symbol = {}});
  return type;
}

}  // namespace

Result<onnx::Graph> packageGraph(const RunRequest& request) {
  AGLOW_TRY(const Compilation compiled, compiledPackage(request, std::string(defaultBackend())));
  AGLOW_TRY(const size_t function, chooseFunction(compiled.functionNames(), {}));
  onnx::Graph graph;
  for (const Port& port : compiled.interfaces[function].inputs)
    graph.inputs.push_back({.name = port.name, .type = declared(port)});
  for (const Port& port : compiled.interfaces[function].outputs)
    graph.outputs.push_back({.name = port.name, .type = declared(port)});
  return graph;
}

Result<std::unique_ptr<Engine>> packageEngine(const RunRequest& request, const std::string& backend) {
  AGLOW_TRY(Compilation compiled, compiledPackage(request, backend));
  AGLOW_TRY(const size_t function, chooseFunction(compiled.functionNames(), {}));
  AGLOW_TRY(const BackendOptions options, backendOptions(request));
  AGLOW_TRY(std::unique_ptr<Network> network, Network::load(std::move(compiled), options));
  const bool own = backend != kReferenceBackend;
  return std::unique_ptr<Engine>(
      std::make_unique<PackageEngine>(own ? "package" : backend, std::move(network), function));
}

Result<std::unique_ptr<Engine>> backendEngine(const onnx::Model& model, const RunRequest& request,
                                              const std::string& backend) {
  ModelOptions chosen = request.model;
  const size_t colon = isBackend(backend) ? std::string::npos : backend.find(':');
  chosen.backend = backend.substr(0, colon);
  if (colon != std::string::npos) {
    const std::string level = backend.substr(colon + 1);
    if (level.size() != 2 || level[0] != 'O' || level[1] < '0' || level[1] > '3')
      return Error{.code = Code::Usage,
                   .message = fmt::format("--backend '{}': '{}' is not an optimization level", backend, level),
                   .where = {},
                   .hint = "O0 to O3, as in cpu:O0"};
    chosen.target.optLevel = level[1] - '0';
  }
  AGLOW_TRY(ParsedOptions parsed, request.parse(chosen));
  SessionOptions options{.import = std::move(parsed.import), .compile = std::move(parsed.compile)};
  AGLOW_TRY(options.backend, backendOptions(request));
  return std::unique_ptr<Engine>(std::make_unique<BackendEngine>(backend, model, std::move(options)));
}

}  // namespace aglow::cli
