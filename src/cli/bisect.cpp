// Intermediate values become outputs, a batch at a time: how many follows from the bytes of the last batch, so that
// memory stays bounded whatever the model's sizes.
#include "cli/bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "import/onnx/faults.h"
#include "import/onnx/parts.h"
#include "import/onnx/tensor_data.h"
#include "import/onnx/value_file.h"
#include "support/quote.h"

namespace aglow::cli {

namespace {

constexpr int64_t kBatchBytes = int64_t{256} << 20;
constexpr size_t kFirstBatch = 16, kLargestBatch = 1024;
constexpr int kMaxDepth = 20;  // functions and branches to go into

struct Spot {
  size_t node;
  std::string name;
};

int64_t bytesOf(const std::vector<ModelValue>& values) {
  int64_t bytes = 0;
  for (const ModelValue& value : values)
    for (const Tensor& tensor : value.tensors) bytes += tensor.bytes();
  return bytes;
}

onnx::ValueInfo declared(const std::string& name, const ModelValue& value) {
  onnx::ValueInfo info{.name = name, .type = {}};
  if (value.hasStrings()) info.type = onnx::valueType(onnx::kStringType, value.isSequence);
  if (!value.maps.empty()) {
    const MapValue& map = value.maps.front();
    const int32_t kind = map.hasStrings() ? onnx::kStringType : elemInfo(map.numbers().type().kind()).onnx;
    info.type = onnx::valueType(kind, value.isSequence,
                                areStrings(map.keys()) ? onnx::kStringType : elemInfo(ElemKind::Int64).onnx);
  }
  if (value.tensors.empty()) return info;
  info.type = onnx::valueType(elemInfo(value.tensors.front().type().kind()).onnx, value.isSequence);
  return info;
}

class Bisector {
public:
  Bisector(const onnx::Model& model, Engine& tested, Engine& reference, const ModelValues& inputs,
           const Tolerances& tolerances)
      : model_(model), tested_(tested), reference_(reference), inputs_(inputs), tolerances_(tolerances) {
    for (const onnx::TensorProto& t : model.graph.initializers) initializers_[t.name] = &t;
  }

  Bisection run(int depth = 0) {
    const std::vector<Spot> spots = spotsInOrder();
    size_t size = kFirstBatch;
    for (size_t first = 0; first < spots.size();) {
      const size_t count = std::min(size, spots.size() - first);
      int64_t bytes = 0;
      const std::optional<Spot> spot = compareBatch({spots.begin() + static_cast<int64_t>(first), count}, bytes);
      if (spot) {
        describe(*spot);
        goInto(model_.graph.nodes[spot->node], depth);
        break;
      }
      first += count;
      const int64_t each = std::max<int64_t>(bytes / static_cast<int64_t>(count), 1);
      size = static_cast<size_t>(std::clamp<int64_t>(kBatchBytes / each, 1, static_cast<int64_t>(kLargestBatch)));
    }
    return std::move(result_);
  }

private:
  // What nodes compute on the way to the model's outputs.
  std::vector<Spot> spotsInOrder() const {
    std::set<std::string> needed;
    for (const onnx::ValueInfo& info : model_.graph.outputs) needed.insert(info.name);
    std::vector<Spot> spots;
    const auto& nodes = model_.graph.nodes;
    for (size_t i = nodes.size(); i-- > 0;) {
      bool used = false;
      for (auto output = nodes[i].outputs.rbegin(); output != nodes[i].outputs.rend(); ++output)
        if (needed.contains(*output) && !output->empty()) {
          spots.push_back({i, *output});
          used = true;
        }
      if (!used) continue;
      for (std::string& name : onnx::namesRead(nodes[i])) needed.insert(std::move(name));
    }
    std::reverse(spots.begin(), spots.end());
    return spots;
  }

  // The first of the values that differs. Where an engine cannot show all of them at once, they are asked for in
  // halves.
  std::optional<Spot> compareBatch(std::span<const Spot> spots, int64_t& bytes) {
    std::vector<std::string> names;
    for (const Spot& spot : spots) names.push_back(spot.name);
    auto got = tested_.values(names, inputs_);
    auto expected = got.ok() ? reference_.values(names, inputs_) : std::move(got);
    if (!expected.ok()) {
      if (spots.size() == 1) {
        result_.skipped.push_back(spots.front().name);
        return std::nullopt;
      }
      const size_t half = spots.size() / 2;
      const std::optional<Spot> early = compareBatch(spots.first(half), bytes);
      return early ? early : compareBatch(spots.subspan(half), bytes);
    }
    bytes += bytesOf(*got) + bytesOf(*expected);
    for (size_t i = 0; i < spots.size(); ++i) {
      ++result_.compared;
      const auto rows = compareValues(names[i], (*got)[i], (*expected)[i], tolerances_);
      const auto differs = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return !row.agrees(); });
      if (differs == rows.end()) continue;
      const onnx::Node& node = model_.graph.nodes[spots[i].node];
      result_.found = Divergence{.place = onnx::placeOf(node),
                                 .number = spots[i].node + 1,
                                 .nodes = model_.graph.nodes.size(),
                                 .value = *differs,
                                 .operands = {},
                                 .alone = {}};
      return spots[i];
    }
    return std::nullopt;
  }

  // The operands of the node, and whether it differs on its own.
  void describe(const Spot& spot) {
    const onnx::Node& node = model_.graph.nodes[spot.node];
    std::vector<std::string> computed;
    ModelValues known;
    for (const std::string& name : onnx::namesRead(node)) {
      if (const auto input = inputs_.find(name); input != inputs_.end()) {
        known[name] = input->second;
        add(name, "input", input->second, input->second);
      } else if (const auto tensor = initializers_.find(name); tensor != initializers_.end()) {
        if (const auto value = onnx::toValue(*tensor->second, model_); value.ok())
          add(name, "constant", *value, *value);
      } else {
        computed.push_back(name);
      }
    }
    if (!computed.empty()) {
      auto got = tested_.values(computed, inputs_);
      auto expected = got.ok() ? reference_.values(computed, inputs_) : std::move(got);
      if (!expected.ok()) return;
      for (size_t i = 0; i < computed.size(); ++i) {
        add(computed[i], "value", (*got)[i], (*expected)[i]);
        known[computed[i]] = (*expected)[i];
      }
    }
    operands_ = known;
    onnx::Model alone = around({node}, {spot.name}, known);
    result_.found->alone = differs(alone, known);
  }

  void add(const std::string& name, std::string kind, const ModelValue& got, const ModelValue& expected) {
    for (ComparisonRow& row : compareValues(name, got, expected, tolerances_))
      result_.found->operands.push_back({.row = std::move(row),
                                         .kind = kind,
                                         .statistics = got.isTensor() ? statisticsOf(got.tensor()) : Statistics{}});
  }

  // A model of these nodes, with the values that they need as inputs.
  onnx::Model around(std::vector<onnx::Node> nodes, const std::vector<std::string>& outputs,
                     const ModelValues& known) const {
    onnx::Model model = model_;
    model.graph.nodes = std::move(nodes);
    model.graph.inputs.clear();
    model.graph.outputs.clear();
    for (const auto& [name, value] : known) model.graph.inputs.push_back(declared(name, value));
    for (const std::string& name : outputs) model.graph.outputs.push_back({.name = name, .type = {}});
    return model;
  }

  std::optional<bool> differs(const onnx::Model& model, const ModelValues& inputs) const {
    const auto tested = tested_.forModel(model), reference = reference_.forModel(model);
    if (!tested || !reference) return std::nullopt;
    std::vector<std::string> names;
    for (const onnx::ValueInfo& info : model.graph.outputs) names.push_back(info.name);
    auto got = tested->values(names, inputs);
    auto expected = got.ok() ? reference->values(names, inputs) : std::move(got);
    if (!expected.ok()) return std::nullopt;
    for (size_t i = 0; i < names.size(); ++i)
      if (!allAgree(compareValues(names[i], (*got)[i], (*expected)[i], tolerances_))) return true;
    return false;
  }

  // The graph of a node that only stands for others: the body of a function, or the branch that is taken.
  struct Inside {
    onnx::Model model;
    ModelValues inputs;
    std::string place;
  };

  std::optional<Inside> functionBody(const onnx::Node& node) const {
    const onnx::Function* function = onnx::calledFunction(model_, node);
    if (function == nullptr) return std::nullopt;
    Inside in{.model = {}, .inputs = {}, .place = {}};
    for (size_t i = 0; i < function->inputs.size(); ++i) in.inputs[function->inputs[i]] = operandAt(node, i);
    in.model = around(onnx::bodyOf(*function, node).nodes, function->outputs, in.inputs);
    in.model.graph.initializers.clear();
    in.model.opsets = function->opsets;
    return in;
  }

  std::optional<Inside> branchTaken(const onnx::Node& node) const {
    if (node.opType != "If" || !node.domain.empty() || node.inputs.empty()) return std::nullopt;
    const ModelValue condition = operandAt(node, 0);
    if (!condition.isTensor() || condition.tensor().type().elements() != 1) return std::nullopt;
    const std::string branch = condition.tensor().toInts().front() != 0 ? "then_branch" : "else_branch";
    for (const onnx::Attribute& attribute : node.attributes) {
      if (attribute.name != branch || !attribute.g) continue;
      Inside in{.model = around(attribute.g->nodes, {}, operands_), .inputs = operands_, .place = ": " + branch};
      const auto& own = attribute.g->initializers;
      in.model.graph.initializers.insert(in.model.graph.initializers.end(), own.begin(), own.end());
      in.model.graph.outputs = attribute.g->outputs;
      return in;
    }
    return std::nullopt;
  }

  // Looks for the difference inside the node that was found; what is found there takes its place.
  void goInto(const onnx::Node& node, int depth) {
    if (depth >= kMaxDepth) return;
    std::optional<Inside> in = functionBody(node);
    if (!in) in = branchTaken(node);
    if (!in) return;
    const auto tested = tested_.forModel(in->model), reference = reference_.forModel(in->model);
    if (!tested || !reference) return;
    Bisection deeper = Bisector(in->model, *tested, *reference, in->inputs, tolerances_).run(depth + 1);
    result_.compared += deeper.compared;
    if (!deeper.found) return;
    deeper.found->place = result_.found->place + in->place + ": " + deeper.found->place;
    result_.found = std::move(deeper.found);
  }

  ModelValue operandAt(const onnx::Node& node, size_t i) const {
    if (i >= node.inputs.size() || node.inputs[i].empty()) return ModelValue::absent();
    if (const auto it = operands_.find(node.inputs[i]); it != operands_.end()) return it->second;
    if (const auto it = initializers_.find(node.inputs[i]); it != initializers_.end())
      if (const auto value = onnx::toValue(*it->second, model_); value.ok()) return *value;
    return ModelValue::absent();
  }

  const onnx::Model& model_;
  Engine& tested_;
  Engine& reference_;
  const ModelValues& inputs_;
  const Tolerances& tolerances_;
  std::map<std::string, const onnx::TensorProto*> initializers_;
  ModelValues operands_;  // of the node found, as the reference has them
  Bisection result_;
};

std::string statisticsText(const Statistics& s) {
  std::string out = fmt::format("from {:.6g} to {:.6g}, mean {:.6g}", s.min, s.max, s.mean);
  if (s.nan > 0) out += fmt::format(", {} NaN", s.nan);
  if (s.infinite > 0) out += fmt::format(", {} infinite", s.infinite);
  return out;
}

}  // namespace

Bisection bisect(const onnx::Model& model, Engine& tested, Engine& reference, const ModelValues& inputs,
                 const Tolerances& tolerances) {
  return Bisector(model, tested, reference, inputs, tolerances).run();
}

std::string toText(const Bisection& bisection, const Engine& tested, const Engine& reference) {
  std::string out;
  if (!bisection.found) {
    out = fmt::format("{} agrees with {} in all of {} values of nodes\n", tested.name(), reference.name(),
                      bisection.compared);
  } else {
    const Divergence& d = *bisection.found;
    out = fmt::format("{} first differs from {} at {}, number {} of {} nodes\n", tested.name(), reference.name(),
                      d.place, d.number, d.nodes);
    out += fmt::format("  value {} : {}, max abs {:.3g}, max rel {:.3g}: {}\n", aglow::quoted(d.value.name),
                       d.value.type, d.value.difference.maxAbs, d.value.difference.maxRel, d.value.verdict());
    if (!d.value.index.empty())
      out += fmt::format("  worst at {}: {} has {}, {} has {}\n", d.value.index, tested.name(), d.value.got,
                         reference.name(), d.value.expected);
    for (const OperandFacts& o : d.operands)
      out += fmt::format("  {} {} : {}, max abs {:.3g}, {}\n", o.kind, aglow::quoted(o.row.name), o.row.type,
                         o.row.difference.maxAbs, statisticsText(o.statistics));
    if (d.alone)
      out += fmt::format("  on equal operands {}\n",
                         *d.alone ? "it differs too: the fault is the node's own"
                                  : "it agrees: it makes small differences of its operands large");
  }
  if (!bisection.skipped.empty())
    out += fmt::format(
        "  not compared: {}{}\n",
        fmt::join(bisection.skipped.begin(),
                  bisection.skipped.begin() + static_cast<int64_t>(std::min<size_t>(bisection.skipped.size(), 10)),
                  ", "),
        bisection.skipped.size() > 10 ? ", …" : "");
  return out;
}

nlohmann::json toJson(const Bisection& bisection) {
  nlohmann::json json = {{"compared", bisection.compared}, {"skipped", bisection.skipped}};
  if (!bisection.found) return json;
  const Divergence& d = *bisection.found;
  json["place"] = d.place;
  json["number"] = d.number;
  json["value"] = toJson(d.value);
  for (const OperandFacts& o : d.operands) {
    nlohmann::json operand = toJson(o.row);
    operand["kind"] = o.kind;
    operand["min"] = o.statistics.min;
    operand["max"] = o.statistics.max;
    operand["mean"] = o.statistics.mean;
    json["operands"].push_back(std::move(operand));
  }
  if (d.alone) json["differs_alone"] = *d.alone;
  return json;
}

}  // namespace aglow::cli
