#include "cli/survey.h"

#include <fmt/format.h>

#include <algorithm>

#include "dynamic/whole_model.h"
#include "import/onnx/host_values.h"
#include "import/onnx/op_import.h"

namespace aglow::cli {

Survey::Survey(const onnx::Model& model) : model_(model) {
  visit(model.graph, model.opsets);
  for (const onnx::Function& function : model.functions)
    for (const onnx::Node& node : function.nodes) visit(node, function.opsets);
}

void Survey::visit(const onnx::Graph& graph, const onnx::Opsets& opsets) {
  for (const onnx::Node& node : graph.nodes) visit(node, opsets);
  for (const onnx::TensorProto& tensor : graph.initializers)
    if (const Result<Shape> shape = Shape::create(tensor.dims); shape.ok()) parameters += shape->elements();
}

void Survey::visit(const onnx::Node& node, const onnx::Opsets& opsets) {
  ++nodes;
  const bool local = std::any_of(model_.functions.begin(), model_.functions.end(), [&](const onnx::Function& f) {
    return f.name == node.opType && f.domain == node.domain;
  });
  const auto opset = opsets.find(node.domain);
  OpUse& use = ops[node.domain.empty() ? node.opType : node.domain + "::" + node.opType];
  use.version = opset == opsets.end() ? 0 : opset->second;
  use.count += 1;
  const onnx::OpRow* row = onnx::findRow(node.domain, node.opType, use.version);
  use.supported = local || (row != nullptr && row->handler != nullptr);
  for (const onnx::Attribute& attribute : node.attributes) {
    if (attribute.g != nullptr) visit(*attribute.g, opsets);
    for (const onnx::Graph& graph : attribute.graphs) visit(graph, opsets);
  }
}

std::string supportText(const Survey& survey, const std::vector<Error>& refused) {
  std::string out = fmt::format("{:<44} {:>7} {:>6}  {}\n", "operator", "version", "count", "supported");
  for (const auto& [name, use] : survey.ops)
    out += fmt::format("{:<44} {:>7} {:>6}  {}\n", name, use.version, use.count, use.supported ? "yes" : "NO");
  if (!refused.empty()) out += "\nnot supported:\n";
  for (const Error& error : refused)
    out += fmt::format("  {}{}{}\n", error.where, error.where.empty() ? "" : ": ", error.message);
  return out;
}

Diagnosed<std::vector<Error>> refusedNodes(const onnx::Model& model, const ParsedOptions& options, bool assumed) {
  CompileOptions lowered = options.compile;
  lowered.stopAfter = "lower";
  lowered.cache.clear();
  std::vector<Error> refused;
  const auto compiled = compileModel(model, lowered, options.import);
  if (compiled.ok()) return refused;
  for (const Error& error : compiled.diagnostics().errors()) {
    // An input whose rank is open: what the nodes make of it cannot be tried, the operators are judged by name.
    if (error.code == Code::NeedShape) continue;
    const bool refusal = codeInfo(error.code).exit == ExitCode::NotSupported;
    if (!refusal && !assumed) return compiled.diagnostics();
    // What has no place is of an input whose value has to be given, as for a sequence.
    const bool inParts = error.code == Code::DynamicShape || error.message == onnx::needsRuntime().message;
    if (refusal && !inParts && !error.where.empty()) refused.push_back(error);
  }
  return refused;
}

}  // namespace aglow::cli
