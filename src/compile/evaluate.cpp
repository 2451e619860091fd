// Evaluates graphs. A composite is lowered in a scratch module of its own, which is evaluated in turn.
#include "compile/evaluate.h"

#include <fmt/format.h>

#include "lower/lower.h"
#include "reference/reference.h"
#include "support/quote.h"

namespace aglow {

namespace {

Result<std::vector<Tensor>> runCore(const Node& node, std::span<const Tensor> inputs) {
  if (node.def().kind == OpKind::View) return std::vector{inputs[0].retyped(node.type())};
  std::vector<Tensor> results;
  for (const Type& type : node.types()) results.emplace_back(type);
  std::vector<TensorRef> in, out;
  for (const Tensor& t : inputs) in.push_back(t.empty() ? TensorRef{} : t.ref());
  for (const Tensor& t : results) out.push_back(t.ref());
  AGLOW_OK(runReference({.attrs = node.attrs(), .in = in, .out = out}));
  return results;
}

Result<std::vector<Tensor>> runComposite(const Node& node, std::span<const Tensor> inputs) {
  Module scratch;
  Function& function = *scratch.addFunction("evaluate");
  NamedTensors bindings;
  std::vector<Value> operands;
  for (const Tensor& t : inputs) {
    if (t.empty()) {
      operands.emplace_back();
      continue;
    }
    Placeholder* place = scratch.addPlaceholder("in", t.type());
    bindings.emplace(place->name(), t);
    operands.push_back(place->result());
  }
  Node* copy = cloneNode(node, operands, {}, function);
  Builder b(function);
  for (int i = 0; i < copy->resultCount(); ++i) b.output("out", copy->result(i));
  AGLOW_OK(lower(function));
  return evaluateFunction(function, bindings);
}

// One run of a function; a value is dropped after its last reader.
class Evaluation {
public:
  Evaluation(const NamedTensors& bindings, const NamedTensors* state) : bindings_(bindings), state_(state) {}

  Status run(const Node& node) {
    if (node.op() == Op::Save) {
      AGLOW_TRY(Tensor value, read(node.input(0)));
      written_[node.input(1).node] = std::move(value);
      return {};
    }
    std::vector<Tensor> inputs;
    for (int i = 0; i < node.inputCount(); ++i) {
      AGLOW_TRY(Tensor value, read(node.input(i)));
      inputs.push_back(std::move(value));
    }
    ReferenceEvaluator evaluator;
    Result<std::vector<Tensor>> results = evaluator.evaluate(node, inputs);
    if (!results.ok())
      return std::move(results).error().at(fmt::format("node {} ({})", quoted(node.name()), node.def().name));
    computed_[&node] = {*std::move(results), node.uses().size()};
    return {};
  }

  // Null where nothing was.
  const Tensor* written(const Placeholder* place) const {
    const auto it = written_.find(place);
    return it == written_.end() ? nullptr : &it->second;
  }

private:
  struct Computed {
    std::vector<Tensor> values;
    size_t readersLeft = 0;
  };

  Result<Tensor> read(Value v) {
    if (!v) return Tensor();
    if (const Constant* constant = asConstant(v)) return constant->tensor();
    if (v.node->op() == Op::Placeholder) return bound(*v.node);
    const auto it = computed_.find(v.node);
    AGLOW_CHECK(it != computed_.end(), "node '" + v.node->name() + "' is read before it is computed");
    Tensor value = it->second.values[static_cast<size_t>(v.index)];
    if (--it->second.readersLeft == 0) computed_.erase(it);
    return value;
  }

  Result<Tensor> bound(const Node& place) const {
    if (const auto it = written_.find(&place); it != written_.end()) return it->second;
    const auto& placeholder = static_cast<const Placeholder&>(place);
    const NamedTensors& held = placeholder.isState() && state_ != nullptr ? *state_ : bindings_;
    const auto it = held.find(place.name());
    if (it == held.end() && placeholder.isState()) return placeholder.initial();
    if (it == held.end()) return Error{Code::MissingBinding, fmt::format("no value is given for '{}'", place.name())};
    if (it->second.type() != place.type())
      return Error{Code::BadBinding, fmt::format("expected {} for '{}', got {}", place.type().text(), place.name(),
                                                 it->second.type().text())};
    return it->second;
  }

  const NamedTensors& bindings_;
  const NamedTensors* state_;
  std::map<const Node*, Computed> computed_;
  std::map<const Node*, Tensor> written_;
};

}  // namespace

Result<std::vector<Tensor>> ReferenceEvaluator::evaluate(const Node& node, std::span<const Tensor> inputs) {
  return node.def().kind == OpKind::Composite ? runComposite(node, inputs) : runCore(node, inputs);
}

Result<std::vector<Tensor>> evaluateFunction(const Function& function, const NamedTensors& bindings,
                                             NamedTensors* state) {
  Evaluation evaluation(bindings, state);
  for (const auto& node : function.nodes()) AGLOW_OK(evaluation.run(*node));
  std::vector<Tensor> outputs;
  for (const Placeholder* place : outputsOf(function)) outputs.push_back(*evaluation.written(place));
  if (state == nullptr) return outputs;
  for (const Placeholder* place : statesOf(function))
    if (const Tensor* value = evaluation.written(place)) state->insert_or_assign(place->name(), *value);
  return outputs;
}

}  // namespace aglow
