// Control flow that depends on run-time values: branches, loops and calls run their graphs one after the other, and
// hand values on without copying them.
#include <fmt/format.h>

#include <algorithm>

#include "compile/evaluate.h"
#include "dynamic/graph_runner.h"
#include "import/onnx/departures.h"
#include "import/onnx/host_values.h"
#include "import/onnx/tensor_data.h"
#include "tensor/slices.h"

namespace aglow {

namespace {

using onnx::KnownValue;
using onnx::KnownValues;
using Outputs = Diagnosed<std::vector<ModelValue>>;

constexpr int64_t kMaxSteps = 1'000'000;
constexpr int kMaxDepth = 100;  // of nested graphs and calls

const onnx::Attribute* attributeOf(const onnx::Node& node, std::string_view name) {
  for (const onnx::Attribute& attribute : node.attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

const onnx::Graph* graphOf(const onnx::Node& node, std::string_view name) {
  const onnx::Attribute* attribute = attributeOf(node, name);
  return attribute != nullptr && attribute->g ? attribute->g.get() : nullptr;
}

Error bad(std::string message) { return {.code = Code::BadNode, .message = std::move(message)}; }

// One truth value or number.
Result<int64_t> scalarOf(const ModelValue& value, std::string_view what) {
  if (!value.isTensor() || value.tensor().type().elements() != 1)
    return bad(fmt::format("expected {} to be one element, got {}", what,
                           value.isTensor() ? value.tensor().type().text() : "no tensor"));
  return value.tensor().toInts().front();
}

KnownValue known(ModelValue value) { return {.value = std::move(value), .constant = false}; }

// What the steps of a loop collect for one of its outputs.
class Collected {
public:
  // A limit of 0 bytes is none.
  Collected(const onnx::ValueInfo& declared, int64_t axis, bool backwards, int64_t limit)
      : declared_(declared), axis_(axis), backwards_(backwards), limit_(limit) {}

  Status add(const ModelValue& value) {
    if (!value.isTensor() && !value.isStrings()) return bad("expected what the loop's steps collect to be a tensor");
    if (!steps_.empty() && steps_.front().text() != value.text())
      return bad(fmt::format("output '{}' of the loop's body is {} in one step and {} in another", declared_.name,
                             steps_.front().text(), value.text()));
    for (const Tensor& tensor : value.tensors) bytes_ += tensor.bytes();
    if (limit_ > 0 && bytes_ > limit_)
      return Error{.code = Code::TooLarge,
                   .message = fmt::format("the loop collects more than {} bytes for its output '{}', by step {}",
                                          limit_, declared_.name, steps_.size())};
    steps_.push_back(value);
    return {};
  }

  Result<ModelValue> all() {
    // Without strings, the vocabulary is empty and changes nothing.
    const strings::Vocabulary vocabulary = strings::Vocabulary::of(steps_);
    std::vector<Tensor> tensors;
    for (const ModelValue& step : steps_) tensors.push_back(vocabulary.numbers(step).tensor());
    bool ofStrings = !steps_.empty() && steps_.front().hasStrings();
    std::vector<int64_t> dims;
    ElemKind kind = ElemKind::Int64;
    if (!tensors.empty()) {
      dims = tensors.front().type().shape().dims();
    } else {
      const std::optional<ElemKind> declared = elemKindByOnnx(declared_.type.elemType);
      ofStrings = declared_.type.elemType == onnx::kStringType;
      if (declared_.type.kind != onnx::TypeProto::Kind::Tensor || !declared_.type.hasShape || (!declared && !ofStrings))
        return Error{.code = Code::UnsupportedFeature,
                     .message = fmt::format("the loop takes no step, and nothing declares the shape of its output '{}'",
                                            declared_.name)};
      kind = declared.value_or(kind);
      for (const onnx::Dim& dim : declared_.type.dims)
        dims.push_back(dim.kind == onnx::Dim::Kind::Value ? std::max<int64_t>(dim.value, 0) : 0);
    }
    const auto rank = std::ssize(dims) + 1;
    if (axis_ < -rank || axis_ >= rank)
      return bad(fmt::format("expected an axis from {} to {}, got {}", -rank, rank - 1, axis_));
    const int64_t axis = axis_ < 0 ? axis_ + rank : axis_;
    if (backwards_) std::reverse(tensors.begin(), tensors.end());
    dims.insert(dims.begin() + axis, 0);
    const ModelValue result =
        ModelValue::of(tensors.empty() ? Tensor(Type(kind, Shape(dims))) : stacked(tensors, axis));
    return ofStrings ? vocabulary.strings(result) : result;
  }

private:
  const onnx::ValueInfo& declared_;
  int64_t axis_;
  bool backwards_;
  int64_t limit_;
  int64_t bytes_ = 0;
  std::vector<ModelValue> steps_;
};

// What a loop gives: its final state, then what its steps collected.
Outputs withCollected(std::vector<ModelValue> state, std::vector<Collected>& collected) {
  for (Collected& each : collected) {
    auto all = each.all();
    if (!all.ok()) return all.error();
    state.push_back(*std::move(all));
  }
  return state;
}

}  // namespace

ModelValue GraphRunner::operand(const onnx::Node& node, size_t index, const Values& values) {
  if (index >= node.inputs.size() || node.inputs[index].empty()) return ModelValue::absent();
  const KnownValue* value = find(node.inputs[index], values);
  AGLOW_CHECK(value != nullptr, "a node is run before its operand " + node.inputs[index]);
  return value->value;
}

KnownValues GraphRunner::captured(const onnx::Graph& graph, const Values& values) {
  KnownValues taken;
  for (const std::string& name : onnx::freeNames(graph))
    if (const KnownValue* value = find(name, values)) taken[name] = *value;
  return taken;
}

GraphRunner& GraphRunner::nested(const onnx::Graph& graph) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<GraphRunner>& runner = nested_[&graph];
  if (!runner) runner = std::make_unique<GraphRunner>(context_, graph, opsets_, nullptr, depth_ + 1);
  return *runner;
}

Outputs GraphRunner::runAlone(size_t index, const Values& values) {
  const onnx::Node& node = graph_.nodes[index];
  if (depth_ >= kMaxDepth)
    return Error{.code = Code::LimitReached, .message = "graphs and functions are nested too deeply"};
  if (const onnx::Function* function = onnx::calledFunction(context_.model, node))
    return runFunction(*function, node, values);
  if (node.domain.empty()) {
    if (node.opType == "If") return runBranch(node, values);
    if (node.opType == "Loop") return runLoop(node, values);
    if (node.opType == "Scan" && attributeOf(node, "directions") == nullptr && opsets_.at("") >= 9)
      return runScan(node, values);
    if (node.opType == "SequenceMap") return runSequenceMap(node, values);
  }
  std::vector<ModelValue> given;
  for (size_t i = 0; i < node.inputs.size(); ++i) given.push_back(operand(node, i, values));
  const bool fromHost = std::any_of(given.begin(), given.end(), [](const ModelValue& value) { return value.onHost(); });
  if (fromHost || onnx::worksOnHost(node)) return runOnHost(node, given);
  KnownValues operands;
  for (const std::string& name : onnx::namesRead(node))
    if (const KnownValue* value = find(name, values)) operands[name] = *value;
  ReferenceEvaluator evaluator;
  return onnx::evaluateNode(context_.model, {.graph = graph_,
                                             .opsets = opsets_,
                                             .nodes = std::span(&index, 1),
                                             .known = operands,
                                             .evaluator = &evaluator,
                                             .tolerance = context_.tolerance});
}

Outputs GraphRunner::runFunction(const onnx::Function& function, const onnx::Node& call, const Values& values) {
  if (call.inputs.size() > function.inputs.size())
    return bad(fmt::format("function '{}' takes {} inputs, got {}", function.name, function.inputs.size(),
                           call.inputs.size()));
  GraphRunner* runner = [&] {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<GraphRunner>& made = nested_[&call];
    if (!made) {
      auto body = std::make_shared<onnx::Graph>(onnx::bodyOf(function, call));
      made = std::make_unique<GraphRunner>(context_, *body, function.opsets, body, depth_ + 1);
    }
    return made.get();
  }();
  KnownValues inputs;
  for (size_t i = 0; i < function.inputs.size(); ++i) {
    const bool given = i < call.inputs.size() && !call.inputs[i].empty();
    inputs[function.inputs[i]] = given ? *find(call.inputs[i], values) : known(ModelValue::absent());
  }
  return runner->run(std::move(inputs));
}

Outputs GraphRunner::runBranch(const onnx::Node& node, const Values& values) {
  const auto condition = scalarOf(operand(node, 0, values), "the condition");
  if (!condition.ok()) return condition.error();
  const onnx::Graph* branch = graphOf(node, *condition != 0 ? "then_branch" : "else_branch");
  if (branch == nullptr) return bad("a branch is missing");
  return nested(*branch).run(captured(*branch, values));
}

Outputs GraphRunner::runLoop(const onnx::Node& node, const Values& values) {
  const onnx::Graph* body = graphOf(node, "body");
  const size_t states = node.inputs.size() < 2 ? 0 : node.inputs.size() - 2;
  if (body == nullptr || body->inputs.size() != states + 2 || body->outputs.size() < states + 1)
    return bad(fmt::format("expected a body with {} inputs and at least {} outputs", states + 2, states + 1));
  int64_t trips = INT64_MAX;
  if (const ModelValue given = operand(node, 0, values); !given.none) {
    const auto count = scalarOf(given, "the number of steps");
    if (!count.ok()) return count.error();
    trips = *count;
  }
  const ModelValue first = operand(node, 1, values);
  const bool conditional = !first.none;
  bool goesOn = true;
  if (conditional) {
    const auto condition = scalarOf(first, "the loop's condition");
    if (!condition.ok()) return condition.error();
    goesOn = *condition != 0;
  }
  std::vector<ModelValue> state;
  for (size_t i = 0; i < states; ++i) state.push_back(operand(node, 2 + i, values));
  std::vector<Collected> collected;
  for (size_t i = 1 + states; i < body->outputs.size(); ++i)
    collected.emplace_back(body->outputs[i], 0, false, context_.backend.memoryLimit);

  GraphRunner& runner = nested(*body);
  const KnownValues outer = captured(*body, values);
  for (int64_t step = 0; step < trips && goesOn; ++step) {
    if (step >= kMaxSteps)
      return Error{.code = Code::LimitReached, .message = fmt::format("the loop takes more than {} steps", kMaxSteps)};
    KnownValues inputs = outer;
    const auto hand = [&](const onnx::ValueInfo& input, ElemKind kind, int64_t value) {
      inputs[input.name] = known(ModelValue::of(Tensor::fromInts(Type(kind, onnx::loopInputShape(input)), {value})));
    };
    hand(body->inputs[0], ElemKind::Int64, step);
    hand(body->inputs[1], ElemKind::Bool, 1);
    for (size_t i = 0; i < states; ++i) inputs[body->inputs[2 + i].name] = known(std::move(state[i]));
    Outputs results = runner.run(std::move(inputs));
    if (!results.ok()) return results;
    if (conditional) {
      const auto condition = scalarOf(results->front(), "the condition that the loop's body computes");
      if (!condition.ok()) return condition.error();
      goesOn = *condition != 0;
    }
    for (size_t i = 0; i < collected.size(); ++i)
      if (Status added = collected[i].add((*results)[1 + states + i]); !added.ok()) return added.error();
    for (size_t i = 0; i < states; ++i) state[i] = std::move((*results)[1 + i]);
  }
  return withCollected(std::move(state), collected);
}

Outputs GraphRunner::runScan(const onnx::Node& node, const Values& values) {
  const onnx::Graph* body = graphOf(node, "body");
  const onnx::Attribute* scanInputs = attributeOf(node, "num_scan_inputs");
  const int64_t scanned = scanInputs == nullptr ? 0 : scanInputs->i;
  const int64_t states = std::ssize(node.inputs) - scanned;
  if (body == nullptr || scanned < 1 || states < 0 || body->inputs.size() != node.inputs.size() ||
      std::ssize(body->outputs) < states)
    return bad("expected a body with as many inputs as the node, and at least one that is scanned");
  const auto entry = [&](std::string_view name, int64_t index) {
    const onnx::Attribute* list = attributeOf(node, name);
    return list != nullptr && index < std::ssize(list->ints) ? list->ints[static_cast<size_t>(index)] : 0;
  };
  std::vector<ModelValue> state;
  for (int64_t i = 0; i < states; ++i) state.push_back(operand(node, static_cast<size_t>(i), values));
  struct Scanned {
    Tensor tensor;  // of strings their numbers
    int64_t axis;
    bool backwards;
    std::optional<strings::Vocabulary> vocabulary;
  };
  std::vector<Scanned> inputs;
  int64_t steps = -1;
  for (int64_t i = 0; i < scanned; ++i) {
    ModelValue value = operand(node, static_cast<size_t>(states + i), values);
    std::optional<strings::Vocabulary> vocabulary;
    if (value.isStrings()) value = vocabulary.emplace(strings::Vocabulary::of({value})).numbers(value);
    if (!value.isTensor()) return bad("expected the scanned inputs to be tensors");
    const std::vector<int64_t>& dims = value.tensor().type().shape().dims();
    int64_t axis = entry("scan_input_axes", i);
    if (axis < -std::ssize(dims) || axis >= std::ssize(dims))
      return bad(fmt::format("axis {} is not one of {}", axis, value.tensor().type().text()));
    if (axis < 0) axis += std::ssize(dims);
    const int64_t extent = dims[static_cast<size_t>(axis)];
    if (steps >= 0 && extent != steps)
      return bad(fmt::format("expected scanned axes of one extent, got {} and {}", steps, extent));
    steps = extent;
    inputs.push_back({value.tensor(), axis, entry("scan_input_directions", i) != 0, std::move(vocabulary)});
  }
  std::vector<Collected> collected;
  for (int64_t i = states; i < std::ssize(body->outputs); ++i)
    collected.emplace_back(body->outputs[static_cast<size_t>(i)], entry("scan_output_axes", i - states),
                           entry("scan_output_directions", i - states) != 0, context_.backend.memoryLimit);

  GraphRunner& runner = nested(*body);
  const KnownValues outer = captured(*body, values);
  for (int64_t step = 0; step < steps; ++step) {
    KnownValues stepInputs = outer;
    for (size_t i = 0; i < state.size(); ++i) stepInputs[body->inputs[i].name] = known(std::move(state[i]));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Scanned& from = inputs[i];
      ModelValue slice = ModelValue::of(sliceOf(from.tensor, from.axis, from.backwards ? steps - 1 - step : step));
      if (from.vocabulary) {
        auto strings = from.vocabulary->strings(slice);
        if (!strings.ok()) return strings.error();
        slice = *std::move(strings);
      }
      stepInputs[body->inputs[state.size() + i].name] = known(std::move(slice));
    }
    Outputs results = runner.run(std::move(stepInputs));
    if (!results.ok()) return results;
    for (size_t i = 0; i < collected.size(); ++i)
      if (Status added = collected[i].add((*results)[state.size() + i]); !added.ok()) return added.error();
    for (size_t i = 0; i < state.size(); ++i) state[i] = std::move((*results)[i]);
  }
  return withCollected(std::move(state), collected);
}

Outputs GraphRunner::runSequenceMap(const onnx::Node& node, const Values& values) {
  const onnx::Graph* body = graphOf(node, "body");
  if (body == nullptr || body->inputs.size() != node.inputs.size())
    return bad("expected a body with as many inputs as the node");
  std::vector<ModelValue> operands;
  for (size_t i = 0; i < node.inputs.size(); ++i) operands.push_back(operand(node, i, values));
  if (operands.empty() || !operands.front().isSequence) return bad("expected a sequence as the first input");
  const size_t count = operands.front().items();
  std::vector<ModelValue> collected(body->outputs.size(), ModelValue::sequence({}));
  GraphRunner& runner = nested(*body);
  const KnownValues outer = captured(*body, values);
  for (size_t k = 0; k < count; ++k) {
    KnownValues inputs = outer;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].isSequence && operands[i].items() != count)
        return bad(fmt::format("expected sequences of {} elements, got {}", count, operands[i].items()));
      inputs[body->inputs[i].name] = known(operands[i].isSequence ? operands[i].item(k) : operands[i]);
    }
    Outputs results = runner.run(std::move(inputs));
    if (!results.ok()) return results;
    for (size_t i = 0; i < collected.size(); ++i) {
      const ModelValue& result = (*results)[i];
      if (result.none || result.isSequence ||
          (k > 0 && (result.hasStrings() != collected[i].hasStrings() || result.isMap() == collected[i].maps.empty())))
        return bad("expected the body to compute tensors of one kind");
      collected[i].append(result);
    }
  }
  return collected;
}

}  // namespace aglow
