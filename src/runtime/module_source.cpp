#include "runtime/module_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "inst/cost.h"
#include "runtime/network.h"
#include "support/quote.h"

namespace aglow {

namespace {

PortSpec specOf(const Port& port) {
  PortSpec spec{.name = port.name};
  if (port.kind != Port::Kind::Tensor && port.kind != Port::Kind::Frozen) {
    spec.holds = PortSpec::Holds::Other;
    spec.hasKind = spec.hasRank = false;
    spec.text = port.kind == Port::Kind::None ? "none" : "sequence";
    return spec;
  }
  spec.kind = port.type.kind();
  spec.text = port.type.text();
  spec.hasDefault = port.kind == Port::Kind::Frozen;
  for (const int64_t size : port.type.shape().dims()) spec.dims.push_back({.size = size});
  return spec;
}

class LoadedNetwork : public LoadedPart {
public:
  LoadedNetwork(std::unique_ptr<Network> network, size_t function)
      : network_(std::move(network)), function_(function) {}

  Outputs run(const Values& inputs) override {
    auto outputs = network_->run(function_, valuesIn(inputs), Network::OutputMemory::Reused);
    if (!outputs.ok()) return outputs.error();
    return *std::move(outputs);
  }
  int64_t bytes() const override {
    const ExecutableFacts facts = network_->facts();
    return facts.weightsBytes + facts.stateBytes + facts.arenaBytes * facts.contexts;
  }

private:
  std::unique_ptr<Network> network_;
  size_t function_;
};

class CompiledFunction : public CompiledPart {
public:
  CompiledFunction(Compilation compilation, size_t function)
      : compilation_(std::move(compilation)), function_(function) {}

  Diagnosed<std::unique_ptr<LoadedPart>> load(const BackendOptions& options) const override {
    auto network = Network::load(copy(), options);
    if (!network.ok()) return network.error();
    return std::unique_ptr<LoadedPart>(std::make_unique<LoadedNetwork>(*std::move(network), function_));
  }

private:
  // All that loading takes; weights are shared.
  Compilation copy() const {
    Compilation all;
    all.programs = compilation_.programs;
    all.interfaces = compilation_.interfaces;
    all.backend = compilation_.backend;
    all.cache = compilation_.cache;
    all.cacheKey = compilation_.cacheKey;
    return all;
  }

  Compilation compilation_;
  size_t function_;
};

class CompiledSource : public NetworkSource {
public:
  CompiledSource(Compilation compilation, size_t function) : spec_(aglow::specOf(compilation.interfaces[function])) {
    backend_ = compilation.backend->name();
    graph_ = wholeGraph(spec_, costOf(compilation, function), hasState(compilation.programs));
    part_ = std::make_shared<CompiledFunction>(std::move(compilation), function);
  }

  const NetworkSpec& spec() const override { return spec_; }
  const PartGraph& graph() const override { return graph_; }
  Diagnosed<std::shared_ptr<CompiledPart>> compile(size_t /*part*/, const std::string& backend) const override {
    if (backend.substr(0, backend.find_first_of(":@")) == backend_) return part_;
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("it was compiled for {} and cannot run on {}", backend_, backend)};
  }

private:
  NetworkSpec spec_;
  PartGraph graph_;
  std::string backend_;
  std::shared_ptr<CompiledPart> part_;
};

}  // namespace

std::shared_ptr<CompiledPart> compiledPart(Compilation compilation, size_t function) {
  return std::make_shared<CompiledFunction>(std::move(compilation), function);
}

PartCost costOf(const Compilation& compilation, size_t function) {
  PartCost cost;
  for (const Program& program : compilation.programs) cost.constantBytes += program.constantBytes();
  const Program& program = compilation.programs[function];
  for (const Instr& instr : program.instrs) {
    const Cost one = aglow::costOf(program, instr);
    cost.flops += one.flops;
    cost.microseconds += microsecondsOf(one);
  }
  cost.arenaBytes = std::max<int64_t>(program.arenaBytes, 0) + program.declaredBytes() - program.constantBytes();
  return cost;
}

bool hasState(std::span<const Program> programs) {
  return std::any_of(programs.begin(), programs.end(),
                     [](const Program& program) { return stateUse(program) == SharedTurns::Use::Writes; });
}

PartGraph wholeGraph(const NetworkSpec& spec, PartCost cost, bool hasState) {
  NetworkPart part{.name = "whole", .inputs = {}, .outputs = {}, .cost = cost, .device = {}, .hasState = hasState};
  for (const PortSpec& input : spec.inputs) part.inputs[input.name] = {.name = input.name};
  PartGraph graph;
  for (const PortSpec& output : spec.outputs) {
    graph.outputs.push_back({.part = 0, .output = part.outputs.size()});
    part.outputs.push_back(output.name);
  }
  graph.parts.push_back(std::move(part));
  return graph;
}

Result<std::shared_ptr<const NetworkSource>> sourceOf(Compilation compilation) {
  AGLOW_TRY(const size_t function, chooseFunction(compilation.functionNames(), {}));
  return std::shared_ptr<const NetworkSource>(std::make_shared<CompiledSource>(std::move(compilation), function));
}

NetworkSpec specOf(const Interface& interface) {
  NetworkSpec spec;
  for (const Port& port : interface.inputs) spec.inputs.push_back(specOf(port));
  for (const Port& port : interface.outputs) spec.outputs.push_back(specOf(port));
  return spec;
}

}  // namespace aglow
