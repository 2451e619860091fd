// Runs one ONNX node: a model around it is written, imported, and computed with the reference kernels.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compile/evaluate.h"
#include "graph/interface.h"
#include "import/onnx/importer.h"
#include "onnx_writer.h"

namespace aglow::testing_support {

// Values of the node's inputs in0, in1 ...; an empty Tensor leaves one out. Results are out0, out1 ...
struct OnnxNode {
  std::string op;
  std::vector<Tensor> inputs;
  std::vector<onnx_writer::Attribute> attributes = {};
  int64_t opset = 21;
  int outputs = 1;
};

inline std::string modelOf(const OnnxNode& node) {
  onnx_writer::Graph graph("test");
  std::vector<std::string> in, out;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    in.push_back(node.inputs[i].empty() ? "" : "in" + std::to_string(i));
    if (node.inputs[i].empty()) continue;
    onnx_writer::Dims dims;
    for (const int64_t extent : node.inputs[i].type().shape().dims()) dims.emplace_back(extent);
    graph.input(in.back(), elemInfo(node.inputs[i].type().kind()).onnx, dims);
  }
  for (int i = 0; i < node.outputs; ++i) out.push_back("out" + std::to_string(i));
  onnx_writer::Node written(node.op, in, out);
  for (const onnx_writer::Attribute& attribute : node.attributes) written.attribute(attribute);
  graph.node(written);
  for (const std::string& name : out) graph.output(name, onnx_writer::Type());
  return onnx_writer::Model(node.opset).graph(graph).bytes();
}

inline Result<std::vector<Tensor>> runNode(const OnnxNode& node) {
  const std::string file = modelOf(node);
  AGLOW_TRY(const onnx::Model model, onnx::parseModel(std::as_bytes(std::span(file)), nullptr));
  ReferenceEvaluator evaluator;
  onnx::ImportOptions options{.shapes = {}, .dims = {}, .given = {}, .evaluator = &evaluator};
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (!node.inputs[i].empty()) options.given["in" + std::to_string(i)].tensors = {node.inputs[i]};
  Diagnosed<onnx::ImportedModel> imported = onnx::importModel(model, options);
  if (!imported.ok()) return imported.diagnostics().errors().front();
  NamedTensors bindings;
  for (const Port& port : imported->interface.inputs)
    if (port.kind == Port::Kind::Tensor) bindings[port.placeholder] = options.given.at(port.name).tensors.front();
  return evaluateFunction(*imported->module->findFunction("main"), bindings);
}

inline Tensor floats(const std::vector<int64_t>& dims, const std::vector<double>& values) {
  return Tensor::of(Type(ElemKind::Float32, Shape(dims)), values);
}
inline Tensor integers(const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return Tensor::of(Type(ElemKind::Int64, Shape(dims)), values);
}

}  // namespace aglow::testing_support
