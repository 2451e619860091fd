#include "train/not_finite.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "grad/losses.h"
#include "support/quote.h"

namespace aglow {

namespace {

enum class Worst : uint8_t { Finite, Infinite, NaN };

Worst worstOf(const Tensor& tensor) {
  if (tensor.empty() || !isFloat(tensor.type().kind())) return Worst::Finite;
  Worst worst = Worst::Finite;
  for (const double value : tensor.doubles()) {
    if (std::isnan(value)) return Worst::NaN;
    if (std::isinf(value)) worst = Worst::Infinite;
  }
  return worst;
}

std::string nameOf(Value v) {
  if (const Placeholder* place = asPlaceholder(v))
    return fmt::format("{} {}", place->isState() ? "state" : "input", quoted(place->name()));
  if (v.node->op() == Op::Constant) return fmt::format("constant {}", quoted(v.node->name()));
  return fmt::format("node {} ({})", quoted(v.node->name()), v.node->def().name);
}

const char* wordOf(Worst worst) { return worst == Worst::NaN ? "NaN" : "infinity"; }

class Watching {
public:
  Watching(const NamedTensors& bindings, const NamedTensors& state) : bindings_(bindings), state_(state) {}

  Status run(const Function& function) {
    ReferenceEvaluator evaluator;
    for (const auto& node : function.nodes()) {
      if (node->op() == Op::Save) continue;
      std::vector<Tensor> inputs;
      for (const Value v : node->inputs()) inputs.push_back(v ? valueOf(v) : Tensor());
      auto results = evaluator.evaluate(*node, inputs);
      if (!results.ok()) return std::move(results).error().at(nameOf({node.get(), 0}));
      computed_[node.get()] = *std::move(results);
    }
    return {};
  }

  Worst worst(Value v) const { return worstOf(valueOf(v)); }

  // The operand that is to blame: NaN before infinity.
  Value cause(const Node& node) const {
    Value found;
    for (const Value v : node.inputs()) {
      const Worst here = v ? worst(v) : Worst::Finite;
      if (here == Worst::NaN) return v;
      if (here == Worst::Infinite && !found) found = v;
    }
    return found;
  }

private:
  Tensor valueOf(Value v) const {
    if (const Constant* constant = asConstant(v)) return constant->tensor();
    if (const Placeholder* place = asPlaceholder(v)) {
      const NamedTensors& held = place->isState() ? state_ : bindings_;
      if (const auto it = held.find(place->name()); it != held.end()) return it->second;
      return place->initial();
    }
    return computed_.at(v.node)[static_cast<size_t>(v.index)];
  }

  const NamedTensors& bindings_;
  const NamedTensors& state_;
  std::map<const Node*, std::vector<Tensor>> computed_;
};

}  // namespace

bool isFinite(const Tensor& tensor) { return worstOf(tensor) == Worst::Finite; }

Result<std::string> firstNotFinite(const Function& function, const std::string& output, const NamedTensors& bindings,
                                   const NamedTensors& state) {
  Watching watching(bindings, state);
  AGLOW_OK(watching.run(function));
  std::vector<Value> suspects{savedAs(function, output)};
  for (const Node* save : function.saves()) suspects.push_back(save->input(0));
  for (const Value suspect : suspects) {
    if (!suspect || watching.worst(suspect) == Worst::Finite) continue;
    Value at = suspect, maker;  // of NaN from infinity
    while (!at.node->isStorage()) {
      const Value before = watching.cause(*at.node);
      if (!before) break;
      if (watching.worst(at) == Worst::NaN && watching.worst(before) == Worst::Infinite) maker = at;
      at = before;
    }
    std::string text = at.node->isStorage() ? fmt::format("{} holds {}", nameOf(at), wordOf(watching.worst(at)))
                                            : fmt::format("{} made the first {} of finite values", nameOf(at),
                                                          wordOf(watching.worst(at)));
    if (maker) text += fmt::format(", of which {} made NaN", nameOf(maker));
    return text;
  }
  return std::string();
}

}  // namespace aglow
