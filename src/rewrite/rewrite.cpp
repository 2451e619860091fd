// The driver of rules: a worklist in the order of the nodes, and sweeps until one of them finds nothing to do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "ops/all_ops.h"
#include "rewrite/rule.h"

namespace aglow {

const Tensor& Match::tensor(int capture) const {
  const Constant* constant = asConstant((*captures_)[capture]);
  AGLOW_CHECK(constant != nullptr, "a captured value is not a constant");
  return constant->tensor();
}

double Match::number(int capture) const {
  const std::optional<double> value = splatValue((*captures_)[capture]);
  AGLOW_CHECK(value.has_value(), "a captured value is not a number");
  return *value;
}

RuleSet::RuleSet(std::vector<Rule> rules) : rules_(std::move(rules)), byRoot_(allOps().size()) {
  for (const Rule& rule : rules_) {
    AGLOW_CHECK(rule.pattern.kind == Pattern::Kind::Node, "rule " + std::string(rule.name) + " has no root operator");
    for (size_t op = 0; op < byRoot_.size(); ++op)
      if (rule.pattern.ops.test(op)) byRoot_[op].push_back(&rule);
  }
}

namespace {

class Driver {
public:
  Driver(Function& function, const RuleSet& rules, PassContext& context)
      : function_(function), rules_(rules), context_(context), budget_(1000 + 50 * function.size()) {}

  bool run() {
    bool changed = false;
    while (sweep()) changed = true;
    return changed;
  }

private:
  // Visits every node once, and again whatever changes or stands next to a change.
  bool sweep() {
    bool changed = false;
    for (const auto& node : function_.nodes()) push(node.get());
    while (!queue_.empty()) {
      Node* node = queue_.front();
      queue_.pop_front();
      if (waiting_.erase(node) == 0) continue;
      if (eraseIfDead(node)) {
        changed = true;
        continue;
      }
      changed |= visit(*node);
    }
    return changed;
  }

  void push(Node* node) {
    if (!node->isStorage() && waiting_.insert(node).second) queue_.push_back(node);
  }

  // Ahead of all others, even if it waits already.
  void pushFirst(Node* node) {
    waiting_.insert(node);
    queue_.push_front(node);
  }

  bool eraseIfDead(Node* node) {
    if (!node->uses().empty() || node->op() == Op::Save) return false;
    waiting_.erase(node);
    for (Node* operand : eraseNode(node)) {
      // What one reader less reads may now fit a rule that asks for a single use.
      push(operand);
      if (operand->uses().size() == 1 && operand->uses().front().user->function() == &function_)
        push(operand->uses().front().user);
    }
    return true;
  }

  // Erases a node, and the constants that only it used. Gives the other nodes it used.
  std::vector<Node*> eraseNode(Node* node) {
    std::vector<Node*> operands;
    std::unordered_set<const Node*> seen;  // a search is quicker where there are few
    const auto isNew = [&](const Node* operand) {
      if (node->inputCount() > 8) return seen.insert(operand).second;
      return std::find(operands.begin(), operands.end(), operand) == operands.end();
    };
    for (int i = Use::kPredicate; i < node->inputCount(); ++i) {
      const Value operand = i == Use::kPredicate ? node->predicate() : node->input(i);
      if (operand && isNew(operand.node)) operands.push_back(operand.node);
    }
    function_.erase(node);
    for (Node*& operand : operands)
      if (operand->op() == Op::Constant && operand->uses().empty()) {
        function_.module().eraseStorage(operand);
        operand = nullptr;
      }
    std::erase_if(operands, [](Node* operand) { return operand == nullptr || operand->isStorage(); });
    return operands;
  }

  bool visit(Node& root) {
    // A predicate that speaks of single rows is lost by nodes that do not keep the rows where they are.
    if (root.predicate() && root.predicate().rank() != 0) return false;
    for (const Rule* rule : rules_.at(root.op())) {
      if (!contains(rule->kinds, root.type().kind()) || !context_.enabled(rule->name)) continue;
      if (!apply(*rule, root)) continue;
      context_.count(rule->name);
      spend(*rule);
      return true;
    }
    return false;
  }

  bool apply(const Rule& rule, Node& root) {
    Node* previous = function_.previous(&root);
    Values results;
    const auto accept = [&](const Captures& captures) {
      const Match found(root, captures, context_);
      if (rule.condition != nullptr && !rule.condition(found)) return false;
      Builder b(function_);
      b.before(&root).named(root.name()).when(root.predicate());
      results = rule.build(found, b);
      if (losesScales(root, results)) results.clear();
      if (results.empty()) eraseNew(previous, root);
      return !results.empty();
    };
    try {
      if (!match(rule.pattern, root, accept)) return false;
    } catch (const BuildFailure& failure) {
      throw InternalError(fmt::format("rule '{}' at node '{}': {}", rule.name, root.name(), failure.what()));
    }
    replace(rule, root, results, previous);
    return true;
  }

  // Scales that belong to an axis do not follow every change of layout; where they get lost a rule does not apply.
  static bool losesScales(const Node& root, const Values& results) {
    return !results.empty() && results.front() && isQuantized(root.type().kind()) &&
           results.front().type() != root.type();
  }

  // Takes back what a rule built before it found that it does not apply.
  void eraseNew(const Node* previous, Node& root) {
    Node* node = function_.previous(&root);
    while (node != previous) {
      Node* earlier = function_.previous(node);
      eraseNode(node);
      node = earlier;
    }
  }

  void replace(const Rule& rule, Node& root, const Values& results, const Node* previous) {
    std::vector<Node*> users;
    for (const Use& use : root.uses())
      if (use.user->function() == &function_) users.push_back(use.user);
    for (int i = 0; i < root.resultCount(); ++i) {
      if (root.useCount(i) == 0) continue;
      const Value by = i < static_cast<int>(results.size()) ? results[static_cast<size_t>(i)] : Value{};
      AGLOW_CHECK(by && by.node != &root,
                  fmt::format("rule '{}' leaves result {} of node '{}' as it is", rule.name, i, root.name()));
      AGLOW_CHECK(by.type() == root.type(i), fmt::format("rule '{}' replaces {} of node '{}' by {}", rule.name,
                                                         root.type(i).text(), root.name(), by.type().text()));
      replaceAllUses(root.result(i), by);
    }
    // What is new comes next, and what reads it in its turn: later in the order, where most of it waits already.
    for (Node* user : users) push(user);
    for (Node* node = function_.previous(&root); node != previous; node = function_.previous(node)) pushFirst(node);
    eraseIfDead(&root);
  }

  // Every application costs one; when half of the budget is gone the rules that still fire are noted.
  void spend(const Rule& rule) {
    ++spent_;
    if (spent_ * 2 > budget_) lateRules_.insert(rule.name);
    if (spent_ <= budget_) return;
    throw InternalError(fmt::format("rules do not settle in function '{}' after {} applications; still firing: {}",
                                    function_.name(), spent_, fmt::join(lateRules_, ", ")));
  }

  Function& function_;
  const RuleSet& rules_;
  PassContext& context_;
  std::deque<Node*> queue_;
  std::unordered_set<Node*> waiting_;
  std::set<std::string_view> lateRules_;
  size_t budget_;
  size_t spent_ = 0;
};

}  // namespace

Result<bool> rewrite(Function& function, const RuleSet& rules, PassContext& context) {
  return Driver(function, rules, context).run();
}

Pass rewritePass(std::string name, std::string doc, const RuleSet& rules) {
  return {.name = std::move(name), .doc = std::move(doc), .run = [&rules](Function& function, PassContext& context) {
            return rewrite(function, rules, context);
          }};
}

}  // namespace aglow
