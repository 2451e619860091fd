// Any bytes, read as an ONNX model: they become structs and tensors or an error, in bounded time and memory.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "import/onnx/tensor_data.h"

namespace {

using namespace aglow::onnx;

// Writing to a volatile keeps the work from being optimised away.
volatile size_t sink;

template <class T>
void convert(const T& proto, const Model& model) {
  const auto tensor = toTensor(proto, model);
  if (!tensor.ok()) {
    sink = tensor.error().text().size();
    return;
  }
  // Every byte must be there, wherever it is owned.
  for (int64_t i = 0; i < tensor->bytes(); ++i) sink = static_cast<size_t>(tensor->data()[i]);
}

void visit(const Graph& graph, const Model& model);

void visit(const std::vector<Node>& nodes, const Model& model) {
  for (const Node& node : nodes) {
    for (const Attribute& a : node.attributes) {
      if (a.t) convert(*a.t, model);
      if (a.sparse) convert(*a.sparse, model);
      if (a.tp) sink = describe(*a.tp).size();
      if (a.g) visit(*a.g, model);
      for (const auto& t : a.tensors) convert(t, model);
      for (const auto& s : a.sparses) convert(s, model);
      for (const auto& t : a.types) sink = describe(t).size();
      for (const auto& g : a.graphs) visit(g, model);
    }
  }
}

void visit(const Graph& graph, const Model& model) {
  for (const auto& t : graph.initializers) convert(t, model);
  for (const auto& s : graph.sparseInitializers) convert(s, model);
  for (const auto* values : {&graph.inputs, &graph.outputs, &graph.valueInfo})
    for (const ValueInfo& value : *values) sink = describe(value.type).size();
  visit(graph.nodes, model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A folder that holds no data files: paths are looked up, none is found.
  const auto model = parseModel(std::as_bytes(std::span(data, size)), nullptr, "/proc/self/fdinfo");
  if (!model.ok()) {
    sink = model.error().text().size();
    return 0;
  }
  visit(model->graph, *model);
  for (const Function& function : model->functions) visit(function.nodes, *model);
  return 0;
}
