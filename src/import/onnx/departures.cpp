// One walk over a model's graphs and functions. Each thing that is mended has a function, and is noted once a graph.
#include "import/onnx/departures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "import/onnx/faults.h"
#include "import/onnx/op_import.h"
#include "import/onnx/parts.h"
#include "import/onnx/tensor_data.h"
#include "support/fork.h"
#include "support/quote.h"

namespace aglow::onnx {

namespace {

// Names of a graph and of those around it.
struct Scope {
  const Scope* outer = nullptr;
  std::string place = {};
  std::unordered_set<std::string> names = {};

  bool knows(const std::string& name) const { return names.contains(name) || (outer != nullptr && outer->knows(name)); }
};

bool sameTensor(const TensorProto& a, const TensorProto& b, const Model& model) {
  const auto x = toValue(a, model), y = toValue(b, model);
  if (!x.ok() || !y.ok() || x->isStrings() != y->isStrings()) return false;
  if (x->isStrings())
    return x->strings.front().shape() == y->strings.front().shape() &&
           x->strings.front().strings() == y->strings.front().strings();
  const Tensor &left = x->tensor(), &right = y->tensor();
  return left.type() == right.type() &&
         (left.bytes() == 0 || std::memcmp(left.data(), right.data(), static_cast<size_t>(left.bytes())) == 0);
}

bool sameValue(const Attribute& a, const Attribute& b, const Model& model) {
  if (a.name != b.name || a.type != b.type || a.refAttrName != b.refAttrName || a.sparse || b.sparse) return false;
  if (a.t && b.t) return sameTensor(*a.t, *b.t, model);
  return !a.t && !b.t && std::memcmp(&a.f, &b.f, sizeof a.f) == 0 && a.i == b.i && a.s == b.s && a.floats == b.floats &&
         a.ints == b.ints && a.strings == b.strings;
}

// The node that computes a name, by its place.
using Producers = std::unordered_map<std::string, size_t>;

// An order in which every node comes after those it reads from, as close to the present one as can be; empty when there
// is none.
std::vector<size_t> sortedOrder(const std::vector<Node>& nodes, const Producers& producers) {
  std::vector<std::vector<size_t>> readers(nodes.size());
  std::vector<size_t> missing(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& name : namesRead(nodes[i]))
      if (const auto it = producers.find(name); it != producers.end()) {
        readers[it->second].push_back(i);
        ++missing[i];
      }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (missing[i] == 0) ready.push(i);
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (const size_t reader : readers[i])
      if (--missing[reader] == 0) ready.push(reader);
  }
  return order.size() == nodes.size() ? order : std::vector<size_t>{};
}

class Mender {
public:
  explicit Mender(Model& model) : model_(model) {}

  void run() {
    if (model_.irVersion == 0)
      note({}, Code::BadGraph, "the model does not name its ir_version", "its opsets say what it means");
    visit(model_.graph, {}, model_.opsets);
    for (Function& function : model_.functions) {
      Scope scope{.outer = nullptr, .place = placeOf(function)};
      scope.names.insert(function.inputs.begin(), function.inputs.end());
      visit(function.nodes, {}, std::move(scope), function.opsets);
    }
  }

private:
  void note(const Scope& scope, Code code, std::string message, std::string meaning, bool silent = false) {
    Error fault{.code = code, .message = std::move(message)};
    if (!scope.place.empty()) fault = std::move(fault).at(scope.place);
    model_.departures.push_back({.fault = std::move(fault), .meaning = std::move(meaning), .silent = silent});
  }

  void visit(Graph& graph, Scope scope, Opsets& opsets) {
    openDimensions(graph, scope);
    dropEqualInitializers(graph, scope);
    for (const ValueInfo& info : graph.inputs) scope.names.insert(info.name);
    for (const TensorProto& tensor : graph.initializers) scope.names.insert(tensor.name);
    for (const SparseTensorProto& tensor : graph.sparseInitializers) scope.names.insert(tensor.values.name);
    visit(graph.nodes, graph.initializers, std::move(scope), opsets);
  }

  void visit(std::vector<Node>& nodes, const std::vector<TensorProto>& initializers, Scope scope, Opsets& opsets) {
    dropEqualConstants(nodes, initializers, scope);
    sort(nodes, scope);
    for (const Node& node : nodes) scope.names.insert(node.outputs.begin(), node.outputs.end());
    declareDomains(nodes, scope, opsets);
    for (Node& node : nodes) {
      checkLoop(node, scope);
      for (Attribute& attribute : node.attributes) {
        if (attribute.g) visitNested(node, *attribute.g, scope, opsets);
        for (Graph& graph : attribute.graphs) visitNested(node, graph, scope, opsets);
      }
    }
  }

  void visitNested(const Node& node, Graph& graph, const Scope& scope, Opsets& opsets) {
    const std::string place = placeWithin(node, graph);
    visit(graph, {.outer = &scope, .place = scope.place.empty() ? place : scope.place + ": " + place}, opsets);
  }

  // ---- a dimension of -1 has no size

  static bool open(TypeProto& type) {
    bool changed = type.elem != nullptr && open(*type.elem);
    for (Dim& dim : type.dims)
      if (dim.kind == Dim::Kind::Value && dim.value == -1) {
        dim = {};
        changed = true;
      }
    return changed;
  }

  void openDimensions(Graph& graph, const Scope& scope) {
    std::string first;
    size_t count = 0;
    for (std::vector<ValueInfo>* list : {&graph.inputs, &graph.outputs, &graph.valueInfo})
      for (ValueInfo& info : *list)
        if (std::string declared = quoted(info.name) + " as " + describe(info.type); open(info.type) && count++ == 0)
          first = std::move(declared);
    if (count > 0)
      note(scope, Code::BadGraph,
           fmt::format("a size of -1 is declared: {}{}", first,
                       count > 1 ? fmt::format(", and {} more", count - 1) : ""),
           "it is taken as open");
  }

  // ---- constants of one name and one value are one constant

  void noteTwice(const std::string& name, const Scope& scope) {
    note(scope, Code::BadGraph, fmt::format("value {} is defined twice, by equal constants", quoted(name)),
         "one of them is dropped");
  }

  // Takes the elements away whose place is marked.
  template <class T>
  static void drop(std::vector<T>& list, const std::vector<bool>& marked) {
    size_t i = 0;
    std::erase_if(list, [&](const T&) { return marked[i++]; });
  }

  void dropEqualInitializers(Graph& graph, const Scope& scope) {
    std::unordered_map<std::string, const TensorProto*> known;
    std::vector<bool> twice(graph.initializers.size(), false);
    for (size_t i = 0; i < twice.size(); ++i) {
      const TensorProto& tensor = graph.initializers[i];
      const auto [first, fresh] = known.emplace(tensor.name, &tensor);
      twice[i] = !fresh && sameTensor(*first->second, tensor, model_);
      if (twice[i]) noteTwice(tensor.name, scope);
    }
    drop(graph.initializers, twice);
  }

  void dropEqualConstants(std::vector<Node>& nodes, const std::vector<TensorProto>& initializers, const Scope& scope) {
    std::unordered_map<std::string, const TensorProto*> tensors;
    for (const TensorProto& tensor : initializers) tensors.emplace(tensor.name, &tensor);
    std::unordered_map<std::string, const Attribute*> values;
    std::vector<bool> twice(nodes.size(), false);
    for (size_t i = 0; i < twice.size(); ++i) {
      const Attribute* value = constantValue(nodes[i]);
      if (value == nullptr || nodes[i].outputs.size() != 1) continue;
      const std::string& name = nodes[i].outputs.front();
      const auto tensor = tensors.find(name);
      const auto [first, fresh] = values.emplace(name, value);
      twice[i] = (!fresh && sameValue(*first->second, *value, model_)) ||
                 (tensor != tensors.end() && value->t && sameTensor(*tensor->second, *value->t, model_));
      if (twice[i]) noteTwice(name, scope);
    }
    drop(nodes, twice);
  }

  // ---- nodes are sorted

  void sort(std::vector<Node>& nodes, const Scope& scope) {
    Producers producers;
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const std::string& name : nodes[i].outputs)
        if (!name.empty() && !scope.knows(name)) producers.emplace(name, i);
    std::string fault;
    for (size_t i = 0; i < nodes.size() && fault.empty(); ++i)
      for (const std::string& name : namesRead(nodes[i]))
        if (const auto it = producers.find(name); it != producers.end() && it->second > i && fault.empty())
          fault = fmt::format("the nodes are not in order: {} reads {}, which {} computes later", placeOf(nodes[i]),
                              quoted(name), placeOf(nodes[it->second]));
    if (fault.empty()) return;
    const std::vector<size_t> order = sortedOrder(nodes, producers);
    if (order.empty()) return;  // a cycle, which import reports
    std::vector<Node> sorted;
    sorted.reserve(nodes.size());
    for (const size_t i : order) sorted.push_back(std::move(nodes[i]));
    nodes = std::move(sorted);
    note(scope, Code::BadGraph, std::move(fault), "they are sorted", true);
  }

  // ---- domains that are known need not be declared

  void declareDomains(const std::vector<Node>& nodes, const Scope& scope, Opsets& opsets) {
    for (const Node& node : nodes) {
      if (opsets.contains(node.domain) || calledFunction(model_, node) != nullptr) continue;
      const auto version = undeclaredVersion(node.domain);
      if (!version) continue;
      note(scope, Code::BadGraph, fmt::format("domain {} is used, but not imported by the model", quoted(node.domain)),
           fmt::format("version {} is taken", *version));
      opsets[node.domain] = *version;
    }
  }

  // ---- the counter and condition of a loop have the shape that its body declares

  void checkLoop(const Node& node, const Scope& scope) {
    if (node.opType != "Loop" || !node.domain.empty()) return;
    for (const Attribute& attribute : node.attributes) {
      if (attribute.name != "body" || !attribute.g) continue;
      for (size_t i = 0; i < std::min<size_t>(attribute.g->inputs.size(), 2); ++i)
        if (const ValueInfo& info = attribute.g->inputs[i]; loopInputShape(info).rank() > 0)
          note(scope, Code::BadNode,
               fmt::format("{}: the body declares its {} as {}, which is a scalar", placeOf(node),
                           i == 0 ? "counter" : "condition", describe(info.type)),
               "it gets the shape [1]");
    }
  }

  Model& model_;
};

}  // namespace

const Attribute* constantValue(const Node& node) {
  const bool is = node.opType == "Constant" && node.domain.empty() && node.attributes.size() == 1;
  return is ? &node.attributes.front() : nullptr;
}

std::string Departure::text(std::string_view file) const {
  std::string place;
  for (const std::string_view part : {file, std::string_view(fault.where)})
    if (!part.empty()) place += std::string(part) + ": ";
  return fmt::format("warning[{}] {}{}; {}", codeInfo(fault.code).id, place, fault.message, meaning);
}

std::optional<Error> Tolerance::judge(const Departure& departure) const {
  if (strict) return departure.fault;
  if (warn) warn(departure);
  return std::nullopt;
}

Diagnostics Tolerance::judge(const Model& model) const {
  Diagnostics faults;
  for (const Departure& departure : model.departures)
    if (auto fault = judge(departure)) faults.add(*std::move(fault));
  return faults;
}

std::function<void(const Departure&)> onceEach(std::function<void(const Departure&)> warn) {
  struct Reported {
    WholeMutex mutex;
    std::unordered_set<std::string> texts;
  };
  return [reported = std::make_shared<Reported>(), warn = std::move(warn)](const Departure& departure) {
    {
      const std::lock_guard lock(reported->mutex);
      if (!reported->texts.insert(departure.fault.text()).second) return;
    }
    warn(departure);
  };
}

Shape loopInputShape(const ValueInfo& input) {
  const TypeProto& type = input.type;
  const bool single = type.hasShape && type.dims.size() == 1 &&
                      (type.dims.front().kind != Dim::Kind::Value || type.dims.front().value == 1);
  return single ? Shape{1} : Shape{};
}

void mend(Model& model) { Mender(model).run(); }

}  // namespace aglow::onnx
