#include "dynamic/profiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dynamic/whole_model.h"
#include "quant/layers.h"
#include "quant/quantize.h"
#include "quant/watch.h"
#include "runtime/key.h"
#include "support/check.h"

namespace aglow {

namespace {

using Sample = std::map<std::string, ModelValue>;

// The number of the first element that is infinite or not a number, or the number of elements.
int64_t firstOdd(const Tensor& tensor) {
  const auto isOdd = [](auto x) { return !std::isfinite(x); };
  if (tensor.type().kind() == ElemKind::Float32) {
    const std::span numbers(tensor.ref().as<const float>(), static_cast<size_t>(tensor.type().elements()));
    return std::find_if(numbers.begin(), numbers.end(), isOdd) - numbers.begin();
  }
  if (!isFloat(tensor.type().kind())) return tensor.type().elements();
  const std::vector<double> numbers = tensor.doubles();
  return std::find_if(numbers.begin(), numbers.end(), isOdd) - numbers.begin();
}

Status checkFinite(const Sample& sample) {
  for (const auto& [name, value] : sample) {
    if (!value.isTensor()) continue;
    const int64_t odd = firstOdd(value.tensor());
    if (odd < value.tensor().type().elements())
      return Error{.code = Code::BadBinding,
                   .message = fmt::format("input '{}' has {} at element {}; expected finite values", name,
                                          value.tensor().doubles()[static_cast<size_t>(odd)], odd)};
  }
  return {};
}

Status checkNames(const Sample& sample, const Interface& interface) {
  for (const auto& [name, value] : sample)
    if (std::none_of(interface.inputs.begin(), interface.inputs.end(),
                     [&](const Port& port) { return port.name == name; }))
      return Error{.code = Code::BadBinding, .message = fmt::format("the model has no input '{}'", name)};
  return {};
}

}  // namespace

WatchedModel::WatchedModel(Form form, CompileFor compile, CompileOptions options, onnx::ImportOptions import,
                           BackendOptions backend)
    : form_(form),
      compile_(std::move(compile)),
      options_(std::move(options)),
      import_(std::move(import)),
      backend_(std::move(backend)) {}

Status WatchedModel::change(Function& function, Interface& interface, const Backend& backend,
                            Watching& watching) const {
  const auto portOf = [](const Placeholder& place) {
    return Port{.kind = Port::Kind::Tensor,
                .name = place.name(),
                .placeholder = place.name(),
                .type = place.type(),
                .items = {}};
  };
  // Channels are of one size in floats too, so that values can be compared; biases are for integers alone.
  const bool correctBias = !options_.disabled.contains(quant::kCorrectBias);
  std::optional<quant::Quantization> quantization;
  if (options_.quantize) {
    const auto veto = [&](const Node& product) { return backend.quantizes(product).reason(); };
    AGLOW_TRY(quantization, quant::Quantization::create(function, *options_.quantize, veto));
    watching.vetoed = quantization->vetoed();
    if (!options_.disabled.contains(quant::kEqualize)) quantization->equalize();
  }
  if (form_ == Form::Switched) {
    AGLOW_TRY(const quant::Switched switched, quant::switchLayers(function, *quantization, correctBias));
    for (const quant::Layer& layer : switched.layers) watching.values.push_back({.name = layer.name, .op = layer.op});
    if (switched.which == nullptr) return {};
    interface.inputs.push_back(portOf(*switched.which));
    watching.layersInput = switched.which->name();
    return {};
  }
  const bool observed = form_ == Form::Observed;
  for (const quant::Watched& one : observed ? quant::observeValues(function) : quant::watchValues(function)) {
    Watched& watched = watching.values.emplace_back(Watched{.name = one.name, .channelAxis = one.channelAxis});
    if (observed) {
      watched.counts = one.counts->name();
      watched.channels = one.channels->name();
      continue;
    }
    interface.outputs.push_back(portOf(*one.output));
    if (!quantization) continue;
    if (const quant::Parameters* parameters = quantization->chosen().find(one.value)) watched.parameters = *parameters;
    watched.seen = quantization->profile().values.at(one.name);
  }
  if (watching.values.empty())
    return Error{.code = Code::UnsupportedFeature,
                 .message =
                     "the model has no convolution or product with constant weights of f32: nothing of it would "
                     "become integers"};
  if (form_ != Form::Integers) return {};
  if (correctBias) quantization->correctBias();
  const Result<bool> changed = quantization->insertConversions();
  if (!changed.ok()) return changed.error();
  return {};
}

// The point where quantization begins is where the phase "optimize" ends.
Diagnosed<WatchedModel::Watching> WatchedModel::compileFor(const Sample& sample) const {
  onnx::ImportOptions import = import_;
  for (const auto& [name, value] : sample)
    if (value.isTensor() && !import.given.contains(name))
      import.shapes.try_emplace(name, value.tensor().type().shape().dims());
  CompileOptions first = options_, rest = options_;
  first.stopAfter = "optimize";
  first.quantize = nullptr;
  auto graph = compile_(first, import);
  if (!graph.ok()) return graph.diagnostics();
  const auto number = chooseFunction(graph->functionNames(), {});
  if (!number.ok()) return number.error();
  Function& function = *graph->module->functions()[*number];
  Interface& interface = graph->interfaces[*number];
  if (const Status known = checkNames(sample, interface); !known.ok()) return known.error();
  Watching watching;
  watching.fingerprint = quant::fingerprintOf(function);
  watching.outputs = interface.outputs.size();
  if (const Status changed = change(function, interface, *graph->backend, watching); !changed.ok())
    return changed.error();
  rest.startFrom = form_ == Form::Floats || form_ == Form::Observed ? "lower" : "optimize";
  rest.stopAfter.clear();
  rest.quantize = nullptr;
  auto compiled = compileModule(std::move(graph->module), std::move(graph->interfaces), rest);
  if (!compiled.ok()) return compiled.diagnostics();
  auto network = Network::load(*std::move(compiled), backend_);
  if (!network.ok()) return network.error();
  watching.network = *std::move(network);
  return watching;
}

Diagnosed<WatchedModel::Watching*> WatchedModel::watchingFor(const Sample& sample) {
  Key key;
  for (const auto& [name, value] : sample) {
    key.add(name);
    key.add(value, Key::Of::Type);
  }
  if (const auto it = watching_.find(key.bytes()); it != watching_.end()) return &it->second;
  auto made = compileFor(sample);
  if (!made.ok()) return made.diagnostics();
  return &watching_.emplace(key.bytes(), *std::move(made)).first->second;
}

Diagnosed<WatchedModel::Seen> WatchedModel::run(const Sample& sample,
                                                const std::function<bool(size_t layer)>& inIntegers) {
  if (const Status finite = checkFinite(sample); !finite.ok()) return finite.error();
  auto watching = watchingFor(sample);
  if (!watching.ok()) return watching.diagnostics();
  Watching& now = **watching;
  const auto function = now.network->find();
  if (!function.ok()) return function.error();
  ModelValue layers;
  if (!now.layersInput.empty()) {
    std::vector<int64_t> flags;
    for (size_t i = 0; i < now.values.size(); ++i) flags.push_back(inIntegers && inIntegers(i) ? 1 : 0);
    layers = ModelValue::of(Tensor::of(Type(ElemKind::Bool, Shape({std::ssize(flags)})), flags));
  }
  const auto lookup = [&, given = valuesIn(sample)](const std::string& name) {
    return name == now.layersInput ? &layers : given(name);
  };
  auto outputs = now.network->run(*function, lookup, Network::OutputMemory::Reused);
  if (!outputs.ok()) return outputs.error();
  ++now.runs;
  return Seen{now.values, now.vetoed, *std::move(outputs), now.fingerprint, now.outputs};
}

Result<quant::Profile> WatchedModel::profile(uint64_t fingerprint) {
  quant::Profile all;
  for (auto& [key, watching] : watching_) {
    if (watching.fingerprint != fingerprint) continue;
    const auto stateOf = [&](const std::string& name) {
      return watching.network->state(watching.network->findState(name));
    };
    quant::Profile one{.model = watching.fingerprint, .samples = watching.runs};
    for (const Watched& value : watching.values) {
      AGLOW_TRY(const Tensor counts, stateOf(value.counts));
      AGLOW_TRY(const Tensor channels, stateOf(value.channels));
      quant::Observed seen = quant::observed(counts, channels, watching.runs);
      one.values[value.name] = std::move(seen.value);
      one.channels[value.name] = value.channelAxis < 0 ? quant::ChannelProfile() : std::move(seen.channels);
    }
    const Status added = all.add(one);
    AGLOW_CHECK(added.ok(), "profiles of one graph add up");
  }
  return all;
}

Profiler::Profiler(CompileFor compile, CompileOptions options, onnx::ImportOptions import, BackendOptions backend)
    : model_(WatchedModel::Form::Observed, std::move(compile), std::move(options), std::move(import),
             std::move(backend)) {}

Profiler::Profiler(const onnx::Model& model, CompileOptions options, onnx::ImportOptions import, BackendOptions backend)
    : Profiler([&model](const CompileOptions& how,
                        const onnx::ImportOptions& sizes) { return compileModel(model, how, sizes); },
               std::move(options), std::move(import), std::move(backend)) {}

Diagnosed<Unit> Profiler::add(const Sample& sample) {
  auto seen = model_.run(sample);
  if (!seen.ok()) return seen.diagnostics();
  if (fingerprint_.value_or(seen->fingerprint) != seen->fingerprint)
    return Error{.code = Code::UnsupportedFeature,
                 .message = "the optimizer makes another graph for the sizes of this sample than for those before",
                 .where = {},
                 .hint = "profile with samples of one size"};
  fingerprint_ = seen->fingerprint;
  return Unit{};
}

}  // namespace aglow
