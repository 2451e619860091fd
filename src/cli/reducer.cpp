#include "cli/reducer.h"

#include <algorithm>
#include <optional>
#include <set>

#include "support/progress.h"

namespace aglow::cli {

namespace {

// All names that a node reads, those of the graphs in it included.
void addReads(const onnx::Node& node, std::set<std::string>& names) {
  for (const std::string& name : node.inputs)
    if (!name.empty()) names.insert(name);
  const auto inside = [&](const onnx::Graph& graph) {
    std::set<std::string> read, made;
    for (const onnx::Node& inner : graph.nodes) {
      addReads(inner, read);
      made.insert(inner.outputs.begin(), inner.outputs.end());
    }
    for (const onnx::ValueInfo& output : graph.outputs) read.insert(output.name);
    for (const onnx::ValueInfo& input : graph.inputs) made.insert(input.name);
    for (const onnx::TensorProto& tensor : graph.initializers) made.insert(tensor.name);
    for (const std::string& name : read)
      if (!made.contains(name)) names.insert(name);
  };
  for (const onnx::Attribute& attribute : node.attributes) {
    if (attribute.g) inside(*attribute.g);
    for (const onnx::Graph& graph : attribute.graphs) inside(graph);
  }
}

class Reducer {
public:
  Reducer(const onnx::Model& model, const std::map<std::string, onnx::TypeProto>& types, const StillFails& fails)
      : model_(model), types_(types), fails_(fails) {
    for (size_t i = 0; i < model.graph.nodes.size(); ++i) kept_.push_back(i);
    for (const onnx::TensorProto& tensor : model.graph.initializers) given_.insert(tensor.name);
    for (const onnx::SparseTensorProto& tensor : model.graph.sparseInitializers) given_.insert(tensor.values.name);
  }

  // Nodes go in ever smaller pieces, from the end on: what comes last is what most depends on.
  Result<onnx::Model> run() {
    for (size_t piece = std::max<size_t>(kept_.size() / 2, 1);; piece /= 2) {
      bool shrank = true;
      while (shrank) {
        shrank = false;
        for (size_t end = kept_.size(); end > 0 && kept_.size() > 1;) {
          const size_t begin = end > piece ? end - piece : 0;
          AGLOW_TRY(const bool gone, drop(begin, end));
          shrank = shrank || gone;
          end = std::min(begin, kept_.size());
        }
        if (piece > 1) break;
      }
      if (piece == 1) break;
    }
    return *modelOf(kept_);
  }

private:
  Result<bool> drop(size_t begin, size_t end) {
    std::vector<size_t> rest(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(begin));
    rest.insert(rest.end(), kept_.begin() + static_cast<std::ptrdiff_t>(end), kept_.end());
    if (rest.empty()) return false;
    const std::optional<onnx::Model> candidate = modelOf(rest);
    reportProgress({.what = "reducing",
                    .done = static_cast<int64_t>(model_.graph.nodes.size() - kept_.size()),
                    .count = static_cast<int64_t>(model_.graph.nodes.size())});
    if (!candidate) return false;
    AGLOW_TRY(const bool still, fails_(*candidate));
    if (still) kept_ = std::move(rest);
    return still;
  }

  // Nothing where a value that becomes an input has no type.
  std::optional<onnx::Model> modelOf(const std::vector<size_t>& nodes) const {
    onnx::Model part = model_;
    onnx::Graph& graph = part.graph;
    graph.nodes.clear();
    graph.inputs.clear();
    graph.outputs.clear();
    graph.valueInfo.clear();
    std::set<std::string> read, made;
    for (const size_t i : nodes) {
      const onnx::Node& node = model_.graph.nodes[i];
      addReads(node, read);
      made.insert(node.outputs.begin(), node.outputs.end());
      graph.nodes.push_back(node);
    }
    std::erase_if(graph.initializers, [&](const onnx::TensorProto& tensor) { return !read.contains(tensor.name); });
    std::erase_if(graph.sparseInitializers,
                  [&](const onnx::SparseTensorProto& tensor) { return !read.contains(tensor.values.name); });
    for (const std::string& name : read) {
      if (made.contains(name) || given_.contains(name)) continue;
      const auto type = types_.find(name);
      if (type == types_.end()) return std::nullopt;
      graph.inputs.push_back({.name = name, .type = type->second});
    }
    for (const onnx::Node& node : graph.nodes)
      for (const std::string& name : node.outputs) {
        if (name.empty() || read.contains(name)) continue;
        const auto type = types_.find(name);
        if (type == types_.end()) continue;
        graph.outputs.push_back({.name = name, .type = type->second});
      }
    return graph.outputs.empty() ? std::nullopt : std::optional(std::move(part));
  }

  const onnx::Model& model_;
  const std::map<std::string, onnx::TypeProto>& types_;
  const StillFails& fails_;
  std::vector<size_t> kept_;  // nodes, in order
  std::set<std::string> given_;
};

}  // namespace

Result<onnx::Model> reduceModel(const onnx::Model& model, const std::map<std::string, onnx::TypeProto>& types,
                                const StillFails& fails) {
  return Reducer(model, types, fails).run();
}

}  // namespace aglow::cli
