// A model as Python sees it.
#include "python/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "graph/text.h"
#include "inst/text.h"
#include "support/quote.h"

namespace aglow::python {

namespace {

constexpr size_t kVariants = 16;

Spec specOf(const onnx::ValueInfo& info) {
  Spec spec{.name = info.name, .type = onnx::describe(info.type)};
  const onnx::TypeProto* type = &info.type;
  using Kind = onnx::TypeProto::Kind;
  const bool optional = type->kind == Kind::Optional;
  if (optional) type = type->elem.get();
  const bool sequence = type->kind == Kind::Sequence;
  if (sequence) type = type->elem.get();
  spec.form = optional && sequence ? Spec::Form::OptionalSequence
              : optional           ? Spec::Form::Optional
              : sequence           ? Spec::Form::Sequence
                                   : Spec::Form::Tensor;
  if (type->kind == Kind::Tensor) spec.kind = elemKindByOnnx(type->elemType);
  spec.ranked = type->hasShape;
  spec.dims = type->dims;
  return spec;
}

Spec specOf(const Port& port) {
  Spec spec{.name = port.name, .kind = port.type.kind(), .type = port.type.text()};
  for (const int64_t dim : port.type.shape().dims())
    spec.dims.push_back({.kind = onnx::Dim::Kind::Value, .value = dim, .symbol = {}});
  return spec;
}

bool sameTypes(const ModelValue& a, const ModelValue& b) {
  return a.none == b.none && a.isSequence == b.isSequence &&
         std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                    [](const Tensor& x, const Tensor& y) { return x.type() == y.type(); });
}

ModelValue copyOf(const ModelValue& value) {
  ModelValue copy{.none = value.none, .isSequence = value.isSequence, .tensors = {}};
  for (const Tensor& tensor : value.tensors) {
    Tensor& bytes = copy.tensors.emplace_back(tensor.type());
    std::memcpy(bytes.mutableData(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  }
  return copy;
}

// The values of a port's placeholders, taken from or put into a map.
void bind(const Port& port, const ModelValue& value, std::map<std::string, Tensor>& tensors) {
  if (port.kind == Port::Kind::Tensor) tensors[port.placeholder] = value.tensor();
  for (size_t i = 0; i < port.items.size(); ++i)
    if (port.items[i].kind == Port::Kind::Tensor) tensors[port.items[i].placeholder] = value.tensors[i];
}

}  // namespace

Diagnosed<std::unique_ptr<Model>> Model::open(std::optional<onnx::Model> model, std::string path,
                                              CompileOptions options, BackendOptions backend) {
  auto made = std::make_unique<Model>();
  made->model_ = std::move(model);
  made->path_ = std::move(path);
  made->options_ = std::move(options);
  made->backend_ = std::move(backend);
  if (made->model_) {
    const onnx::Graph& graph = made->model_->graph;
    for (const onnx::ValueInfo& info : graph.inputs) {
      made->inputs_.push_back(specOf(info));
      made->inputs_.back().hasDefault = std::any_of(graph.initializers.begin(), graph.initializers.end(),
                                                    [&](const auto& tensor) { return tensor.name == info.name; });
    }
    for (const onnx::ValueInfo& info : graph.outputs) made->outputs_.push_back(specOf(info));
    return made;
  }
  auto compiled = made->compile(made->options_);
  if (!compiled.ok()) return compiled.diagnostics();
  for (const Port& port : compiled->interface.inputs) made->inputs_.push_back(specOf(port));
  for (const Port& port : compiled->interface.outputs) made->outputs_.push_back(specOf(port));
  return made;
}

Diagnosed<Compilation> Model::compile(const CompileOptions& options) const {
  if (!model_) return compileFile(path_, options);
  auto compiled = compileModel(*model_, options);
  if (!compiled.ok() && !path_.empty()) return Diagnostics(compiled.diagnostics()).at(path_);
  return compiled;
}

Diagnosed<std::shared_ptr<Model::Variant>> Model::build(const std::map<std::string, ModelValue>& given) const {
  CompileOptions options = options_;
  for (const auto& [name, value] : given) options.given[name] = value;
  auto compiled = compile(options);
  if (!compiled.ok()) return compiled.diagnostics();
  auto variant = std::make_shared<Variant>();
  variant->interface = compiled->interface;
  for (const Port& port : variant->interface.inputs)
    if (port.kind == Port::Kind::Frozen && given.contains(port.name))
      variant->given[port.name] = copyOf(given.at(port.name));
  auto executable = load(*std::move(compiled), backend_);
  if (!executable.ok()) return executable.error();
  variant->executable = *std::move(executable);
  return variant;
}

Diagnosed<std::shared_ptr<Model::Variant>> Model::variantFor(const std::map<std::string, ModelValue>& given) {
  const auto fits = [&](const std::shared_ptr<Variant>& variant) {
    for (const Port& port : variant->interface.inputs) {
      const auto it = given.find(port.name);
      if (it == given.end()) continue;
      if (const auto frozen = variant->given.find(port.name); frozen != variant->given.end()) {
        if (!sameTypes(frozen->second, it->second) || frozen->second.tensors != it->second.tensors) return false;
      } else if (port.kind == Port::Kind::Tensor) {
        if (!it->second.isTensor() || it->second.tensor().type() != port.type) return false;
      } else if (it->second.none != (port.kind == Port::Kind::None) || it->second.tensors.size() != port.items.size()) {
        return false;
      } else {
        for (size_t i = 0; i < port.items.size(); ++i)
          if (it->second.tensors[i].type() != port.items[i].type) return false;
      }
    }
    return true;
  };
  const std::lock_guard lock(mutex_);
  if (const auto it = std::find_if(variants_.begin(), variants_.end(), fits); it != variants_.end()) {
    variants_.splice(variants_.begin(), variants_, it);
    return *it;
  }
  auto variant = build(given);
  if (!variant.ok()) return variant.diagnostics();
  variants_.push_front(*variant);
  if (variants_.size() > kVariants) variants_.pop_back();
  return variant;
}

Diagnosed<std::vector<ModelValue>> Model::run(const std::map<std::string, ModelValue>& given) {
  auto found = variantFor(given);
  if (!found.ok()) return found.diagnostics();
  Variant& variant = **found;
  std::map<std::string, Tensor> tensors;
  for (const Port& port : variant.interface.inputs) {
    const auto it = given.find(port.name);
    if (it != given.end()) bind(port, it->second, tensors);
  }
  std::map<std::string, Tensor> used;
  for (const Binding& binding : variant.executable->inputs())
    if (const auto it = tensors.find(binding.name); it != tensors.end()) used.insert(*it);
  auto inputs = bindByName(variant.executable->inputs(), used);
  if (!inputs.ok()) return inputs.error();
  const std::lock_guard lock(variant.running);
  auto outputs = variant.executable->run(*inputs);
  if (!outputs.ok()) return outputs.error();

  std::map<std::string, Tensor> results;
  for (size_t i = 0; i < outputs->size(); ++i)
    results[variant.executable->outputs()[i].name] = std::move((*outputs)[i]);
  std::vector<ModelValue> values;
  for (const Port& port : variant.interface.outputs) {
    ModelValue& value = values.emplace_back();
    value.none = port.kind == Port::Kind::None;
    value.isSequence = port.kind == Port::Kind::Sequence;
    if (port.kind == Port::Kind::Tensor) value.tensors.push_back(results.at(port.placeholder));
    for (const Port& item : port.items) value.tensors.push_back(results.at(item.placeholder));
  }
  return values;
}

Diagnosed<std::string> Model::text(CompileOptions options, bool onProgram) const {
  const std::string stage = options.stopAfter;
  auto compiled = compile(options);
  if (!compiled.ok()) return compiled.diagnostics();
  if (onProgram != compiled->program.has_value())
    return Error{.code = Code::Usage,
                 .message = fmt::format("after {} there is {}", quoted(stage),
                                        onProgram ? "a graph, and no program yet" : "a program, and no graph any more"),
                 .hint = fmt::format("{}(after={})", onProgram ? "graph" : "program", quoted(stage))};
  return onProgram ? print(*compiled->program) : print(*compiled->module);
}

}  // namespace aglow::python
