#include "cli/open_sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "support/suggest.h"

namespace aglow::cli {

namespace {

using onnx::Dim;

const onnx::TypeProto& insideOptional(const onnx::TypeProto& type) {
  return type.kind == onnx::TypeProto::Kind::Optional && type.elem != nullptr ? *type.elem : type;
}

}  // namespace

std::vector<std::string> openDims(const onnx::Graph& graph) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& info : graph.inputs)
    for (const Dim& dim : insideOptional(info.type).dims)
      if (dim.kind == Dim::Kind::Symbol && std::ranges::find(names, dim.symbol) == names.end())
        names.push_back(dim.symbol);
  return names;
}

Status checkDims(const onnx::Graph& graph, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const std::vector<std::string> names = openDims(graph);
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.rfind('='));
    if (std::ranges::find(names, name) != names.end()) continue;
    std::string hint = didYouMean(name, std::vector<std::string_view>(names.begin(), names.end()));
    if (hint.empty())
      hint = names.empty() ? "its inputs have no sizes with names; --shape gives whole shapes"
                           : fmt::format("its inputs leave open: {}", fmt::join(names, ", "));
    return Error{.code = Code::BadBinding,
                 .message = fmt::format("--dim {}: the model has no dimension '{}'", word, name),
                 .where = {},
                 .hint = hint};
  }
  return {};
}

std::vector<std::string> takeOnes(const onnx::Graph& graph, onnx::ImportOptions& import) {
  std::set<std::string_view> initialized;
  for (const onnx::TensorProto& t : graph.initializers) initialized.insert(t.name);
  for (const onnx::SparseTensorProto& t : graph.sparseInitializers) initialized.insert(t.values.name);
  std::map<std::string, int64_t> known = import.dims;
  const auto shapeGiven = [&](const std::string& name) -> std::optional<std::vector<int64_t>> {
    if (const auto it = import.shapes.find(name); it != import.shapes.end()) return it->second;
    const auto it = import.given.find(name);
    if (it == import.given.end()) return std::nullopt;
    if (!it->second.isTensor()) return std::vector<int64_t>();
    const auto& dims = it->second.tensor().type().shape().dims();
    return std::vector<int64_t>(dims.begin(), dims.end());
  };
  for (const onnx::ValueInfo& info : graph.inputs)
    if (const auto shape = shapeGiven(info.name))
      for (size_t i = 0; i < std::min(shape->size(), insideOptional(info.type).dims.size()); ++i)
        if (const Dim& dim = insideOptional(info.type).dims[i]; dim.kind == Dim::Kind::Symbol)
          known.emplace(dim.symbol, (*shape)[i]);
  std::vector<std::string> taken;
  for (const onnx::ValueInfo& info : graph.inputs) {
    const onnx::TypeProto& type = info.type;
    if (initialized.contains(info.name) || shapeGiven(info.name) || type.kind != onnx::TypeProto::Kind::Tensor ||
        !type.hasShape)
      continue;
    std::vector<int64_t> shape;
    bool nameless = false;
    for (size_t i = 0; i < type.dims.size(); ++i) {
      const Dim& dim = type.dims[i];
      const bool valued = dim.kind == Dim::Kind::Value && dim.value >= 0;
      int64_t size = valued ? dim.value : 1;
      if (dim.kind == Dim::Kind::Symbol) {
        const auto [it, fresh] = known.emplace(dim.symbol, 1);
        size = it->second;
        if (fresh) {
          import.dims[dim.symbol] = 1;
          taken.push_back(dim.symbol);
        }
      } else if (!valued) {
        nameless = true;
        taken.push_back(fmt::format("{}[{}]", info.name, i));
      }
      shape.push_back(size);
    }
    if (nameless) import.shapes[info.name] = std::move(shape);
  }
  return taken;
}

}  // namespace aglow::cli
