// Networks: which placeholders the ports of a function are, and runs from several threads.
#include "runtime/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "support/quote.h"

namespace aglow {

namespace {

constexpr size_t kSpare = 2;  // what a step of a loop reads, and what it writes; of each run

// The placeholders of a port: one, or those of a sequence's items.
std::vector<std::string_view> placeholdersOf(const Port& port) {
  if (port.kind == Port::Kind::Tensor) return {port.placeholder};
  std::vector<std::string_view> names;
  for (const Port& item : port.items) names.emplace_back(item.placeholder);
  return names;
}

size_t positionOf(std::span<const Binding> bindings, std::string_view name) {
  const auto it = std::find_if(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.name == name; });
  AGLOW_CHECK(it != bindings.end(), "the program does not give the output " + std::string(name));
  return static_cast<size_t>(it - bindings.begin());
}

}  // namespace

Network::Network(std::unique_ptr<Executable> executable, std::vector<Interface> interfaces)
    : executable_(std::move(executable)),
      interfaces_(std::move(interfaces)),
      spares_(kSpare * static_cast<size_t>(executable_->facts().contexts)) {
  for (size_t i = 0; i < interfaces_.size(); ++i) {
    Wiring& wiring = wirings_.emplace_back();
    std::map<std::string_view, Source> sources;
    for (size_t port = 0; port < interfaces_[i].inputs.size(); ++port) {
      const std::vector<std::string_view> names = placeholdersOf(interfaces_[i].inputs[port]);
      for (size_t item = 0; item < names.size(); ++item) sources[names[item]] = {port, item};
    }
    for (const Binding& binding : inputs(i)) {
      const auto source = sources.find(binding.name);
      AGLOW_CHECK(source != sources.end(), "nothing gives the program its input " + binding.name);
      wiring.inputs.push_back(source->second);
    }
    for (const Port& port : interfaces_[i].outputs) {
      std::vector<size_t>& positions = wiring.outputs.emplace_back();
      for (const std::string_view name : placeholdersOf(port)) positions.push_back(positionOf(outputs(i), name));
    }
    wiring.spare.resize(outputs(i).size());
  }
}

Result<std::unique_ptr<Network>> Network::load(Compilation compilation, const BackendOptions& options) {
  std::vector<Interface> interfaces = compilation.interfaces;
  AGLOW_TRY(std::unique_ptr<Executable> executable, aglow::load(std::move(compilation), options));
  return std::unique_ptr<Network>(new Network(std::move(executable), std::move(interfaces)));
}

Result<std::vector<Tensor>> Network::bind(size_t function, const Lookup& inputs) const {
  std::vector<Tensor> tensors;
  const std::vector<Source>& sources = wirings_[function].inputs;
  tensors.reserve(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    const Port& port = interfaces_[function].inputs[sources[i].port];
    const ModelValue* value = inputs(port.name);
    if (value == nullptr || sources[i].item >= value->tensors.size())
      return Error{.code = Code::MissingBinding,
                   .message = fmt::format("input {} of type {} was not given", quoted(port.name),
                                          executable_->inputs(function)[i].type.text())};
    tensors.push_back(value->tensors[sources[i].item]);
  }
  return tensors;
}

std::vector<Tensor> Network::takeSpare(size_t function) {
  std::vector<Tensor> results;
  const std::span<const Binding> bindings = outputs(function);
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < bindings.size(); ++i) {
    std::vector<Tensor>& spare = wirings_[function].spare[i];
    const auto free = std::find_if(spare.begin(), spare.end(), [](const Tensor& t) { return !t.isShared(); });
    if (free != spare.end()) {
      results.push_back(*free);
      continue;
    }
    results.emplace_back(bindings[i].type);
    if (spare.size() < spares_) spare.push_back(results.back());
  }
  // Whoever held the memory before has looked at it for the last time.
  std::atomic_thread_fence(std::memory_order_acquire);
  return results;
}

Result<std::vector<Tensor>> Network::execute(size_t function, std::span<const Tensor> inputs, OutputMemory memory) {
  try {
    std::vector<Tensor> results;
    if (memory == OutputMemory::Reused)
      results = takeSpare(function);
    else
      for (const Binding& binding : outputs(function)) results.emplace_back(binding.type);
    std::vector<TensorRef> in, out;
    in.reserve(inputs.size());
    out.reserve(results.size());
    for (const Tensor& tensor : inputs) in.push_back(tensor.empty() ? TensorRef{} : tensor.ref());
    for (const Tensor& tensor : results) out.push_back(tensor.ref());
    AGLOW_OK(executable_->run(in, out, nullptr, function));
    return results;
  } catch (const std::bad_alloc&) {
    return Error{.code = Code::OutOfMemory, .message = "the outputs cannot be allocated"};
  }
}

Result<std::vector<ModelValue>> Network::run(size_t function, const Lookup& inputs, OutputMemory memory) {
  AGLOW_CHECK(function < wirings_.size(), "there is no such function");
  AGLOW_TRY(const std::vector<Tensor> given, bind(function, inputs));
  AGLOW_TRY(const std::vector<Tensor> results, execute(function, given, memory));
  std::vector<ModelValue> values;
  for (size_t i = 0; i < wirings_[function].outputs.size(); ++i) {
    ModelValue& value = values.emplace_back();
    value.none = interfaces_[function].outputs[i].kind == Port::Kind::None;
    value.isSequence = interfaces_[function].outputs[i].kind == Port::Kind::Sequence;
    for (const size_t position : wirings_[function].outputs[i]) value.tensors.push_back(results[position]);
  }
  return values;
}

Status Network::run(size_t function, std::span<const TensorRef> inputs, std::span<const TensorRef> outputs,
                    RunObserver* observer) {
  return executable_->run(inputs, outputs, observer, function);
}

Result<Tensor> Network::state(size_t index) { return executable_->state().read(index); }

Status Network::setState(size_t index, const TensorRef& value) { return executable_->state().write(index, value); }

void Network::resetState() { executable_->state().reset(); }

Network::Lookup valuesIn(const std::map<std::string, ModelValue>& values) {
  return [&values](const std::string& name) {
    const auto it = values.find(name);
    return it == values.end() ? nullptr : &it->second;
  };
}

Tensor withScales(const Tensor& tensor, const Type& type) {
  const bool fits =
      tensor.type().shape() == type.shape() && storageKind(tensor.type().kind()) == storageKind(type.kind());
  return fits ? tensor.retyped(type) : tensor;
}

Result<std::map<std::string, Tensor>> runModule(std::unique_ptr<Module> module,
                                                const std::map<std::string, Tensor>& inputs,
                                                const CompileOptions& options) {
  Diagnosed<Compilation> compiled = compileModule(std::move(module), options);
  if (!compiled.ok()) return compiled.diagnostics().errors().front();
  AGLOW_TRY(const std::unique_ptr<Network> network, Network::load(*std::move(compiled)));
  AGLOW_TRY(const size_t function, network->find());
  AGLOW_OK(bindByName(network->inputs(function), inputs));  // also finds names that the module does not have
  std::map<std::string, ModelValue> values;
  for (const auto& [name, tensor] : inputs) values[name] = ModelValue::of(tensor);
  AGLOW_TRY(const std::vector<ModelValue> results, network->run(function, valuesIn(values)));
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < results.size(); ++i)
    named[network->functions()[function].outputs[i].name] = results[i].tensor();
  return named;
}

}  // namespace aglow
