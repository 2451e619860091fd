// Reverse mode: from a value back to all that it was computed from, node by node, with the rules of single operators.
#include "grad/differentiate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "grad/rules.h"
#include "grad/shapes.h"
#include "ops/all_ops.h"
#include "support/quote.h"

namespace aglow {

namespace grad {

GradRule* gradRule(Op op) {
  static const std::vector<GradRule*> table = [] {
    std::vector<GradRule*> rows(allOps().size(), nullptr);
    for (const OpDef* def : allOps())
      if (def->gradientBy() == GradientBy::Formula) rows[static_cast<size_t>(opOf(*def))] = byFormula;
#define AGLOW_ROW(name, function) rows[static_cast<size_t>(Op::name)] = grad::function;
#include "grad/grad_table.inc"
#undef AGLOW_ROW
    return rows;
  }();
  return table[static_cast<size_t>(op)];
}

}  // namespace grad

namespace {

using Key = std::pair<const Node*, int>;
Key keyOf(Value v) { return {v.node, v.index}; }

std::string described(const Node& node) { return fmt::format("node {} ({})", quoted(node.name()), node.def().name); }

// The values that change with some others, up to a node of the function.
class Dependence {
public:
  Dependence(const Function& function, const Node* end, const std::vector<Value>& on) {
    for (const Value v : on) values_.insert(keyOf(v));
    for (const auto& node : function.nodes()) {
      if (node.get() == end) break;
      const std::vector<Value> inputs = node->inputs();
      if (std::none_of(inputs.begin(), inputs.end(), [&](Value v) { return v && changes(v); })) continue;
      for (int i = 0; i < node->resultCount(); ++i)
        if (passes(*node, i)) values_.insert({node.get(), i});
    }
  }

  bool changes(Value v) const { return values_.contains(keyOf(v)); }

private:
  // Elements that are no floats change in steps. What cannot be differentiated counts, so that it is refused.
  static bool passes(const Node& node, int result) {
    switch (node.def().gradientBy()) {
      case GradientBy::Zero:
        return false;
      case GradientBy::None:
        return true;
      default:
        return isFloat(node.type(result).kind());
    }
  }

  std::set<Key> values_;
};

// All Gradient nodes of one value.
class Differentiation {
public:
  Differentiation(Function& function, Node* first) : function_(function) {
    for (const auto& node : function.nodes())
      if (node->op() == Op::Gradient && node->input(0) == first->input(0)) requests_.push_back(node.get());
  }

  Status run(ExpansionOf* expansionOf) {
    while (true) {
      const std::vector<Node*> path = findPath();
      std::vector<Node*> expanded;
      for (Node* node : path)
        if (node->def().gradientBy() == GradientBy::Lowering) expanded.push_back(node);
      if (expanded.empty()) return propagate(path);
      for (Node* node : expanded) AGLOW_OK(expand(node, expansionOf));
    }
  }

private:
  Value y() const { return requests_.front()->input(0); }

  // Nodes between the variables and y, in order. They compute whatever their predicates say: what is skipped must not
  // come back with a gradient.
  std::vector<Node*> findPath() {
    std::vector<Value> xs;
    for (const Node* request : requests_) xs.push_back(request->input(1));
    dependence_.emplace(function_, requests_.front(), xs);
    std::set<const Node*> needed;
    std::vector<Node*> path;
    if (dependence_->changes(y())) needed.insert(y().node);
    for (auto it = function_.nodes().rbegin(); it != function_.nodes().rend(); ++it) {
      Node* node = it->get();
      if (!needed.contains(node)) continue;
      bool inner = false;
      for (const Value v : node->inputs()) {
        if (!v || !dependence_->changes(v)) continue;
        needed.insert(v.node);
        inner = true;
      }
      if (!inner) continue;
      node->setPredicate({});
      path.push_back(node);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

  Status expand(Node* node, ExpansionOf* expansionOf) {
    Builder b(function_);
    b.before(node).named(node->name());
    const auto results = building([&] { return expansionOf(node->op())(b, *node); });
    if (!results.ok()) return Error(results.error()).at(described(*node));
    for (int i = 0; i < node->resultCount(); ++i)
      if (node->useCount(i) > 0) replaceAllUses(node->result(i), (*results)[static_cast<size_t>(i)]);
    function_.erase(node);
    return {};
  }

  Status propagate(const std::vector<Node*>& path) {
    std::string refused;
    for (const Node* node : path)
      if (node->def().gradientBy() == GradientBy::None) refused += (refused.empty() ? "" : ", ") + described(*node);
    if (!refused.empty())
      return Error{.code = Code::UnsupportedFeature,
                   .message = fmt::format("operators without a gradient lie between the variables and {}: {}",
                                          quoted(y().node->name()), refused)};
    Builder b(function_);
    b.before(requests_.front());
    b.named(y().node->name() + "_grad");
    gradients_[keyOf(y())] = b.splat({.value = 1, .elem = y().kind(), .shape = y().shape().dims()});
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      const auto done = building([&] {
        pass(b, **it);
        return Unit{};
      });
      if (!done.ok()) return Error(done.error()).at("gradient of " + described(**it));
    }
    std::vector<Value> answers;
    for (const Node* request : requests_) {
      const auto found = gradients_.find(keyOf(request->input(1)));
      answers.push_back(found != gradients_.end() ? found->second : grad::zeros(b, request->type()));
    }
    for (size_t i = 0; i < requests_.size(); ++i) {
      replaceAllUses(requests_[i]->result(), answers[i]);
      function_.erase(requests_[i]);
    }
    return {};
  }

  // Takes what came back to a node's results on to its operands.
  void pass(Builder& b, Node& node) {
    grad::Backward s{.b = b, .node = node, .dy = {}, .wanted = {}};
    bool any = false;
    for (int i = 0; i < node.resultCount(); ++i) {
      const auto it = gradients_.find({&node, i});
      s.dy.push_back(it == gradients_.end() ? Value{} : it->second);
      any = any || s.dy.back();
    }
    if (!any) return;
    for (const Value v : node.inputs()) s.wanted.push_back(v && isFloat(v.kind()) && dependence_->changes(v));
    b.named(node.name() + "_grad");
    const std::vector<Value> all = grad::gradRule(node.op())(s);
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      const Value gradient = all[static_cast<size_t>(i)];
      if (!gradient || !s.wants(i)) continue;
      AGLOW_CHECK(gradient.type() == node.input(i).type(), "a gradient of " + described(node) + " has another type");
      Value& sum = gradients_[keyOf(node.input(i))];
      sum = sum ? b.add(sum, gradient) : gradient;
    }
  }

  Function& function_;
  std::vector<Node*> requests_;
  std::optional<Dependence> dependence_;
  std::map<Key, Value> gradients_;
};

}  // namespace

Result<bool> differentiate(Function& function, ExpansionOf* expansionOf) {
  const auto firstRequest = [&]() -> Node* {
    for (const auto& node : function.nodes())
      if (node->op() == Op::Gradient) return node.get();
    return nullptr;
  };
  bool changed = false;
  for (Node* request = firstRequest(); request != nullptr; request = firstRequest()) {
    AGLOW_OK(Differentiation(function, request).run(expansionOf));
    changed = true;
  }
  return changed;
}

}  // namespace aglow
