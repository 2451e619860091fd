// Predicates for what is computed in vain: from the last node to the first, a node whose uses all stand under one
// condition gets it. Conditions are predicates of the users, and those of choices between what is computed and
// something else.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "graph/builder.h"
#include "graph/rows.h"
#include "ops/work.h"
#include "optimize/passes.h"

namespace aglow {

namespace {

// When a value is needed.
struct Demand {
  Value condition;  // none: always
  bool negated = false;
  bool rows = false;  // row by row

  explicit operator bool() const { return static_cast<bool>(condition); }
  bool operator==(const Demand&) const = default;
};

// Numbered by the nodes, so that groups have an order that is the same in every run.
using GroupKey = std::tuple<size_t, int, bool, bool>;
struct Group {
  Demand demand;
  double work = 0;     // microseconds that it saves where the condition is false
  double passing = 0;  // microseconds to hand what is chosen from through memory, which may have been fused
  bool given = false;  // by a predicate that is there anyway
};

std::vector<const Type*> operandTypes(const Node& node) {
  std::vector<const Type*> types;
  for (int i = 0; i < node.inputCount(); ++i) types.push_back(node.input(i) ? &node.input(i).type() : nullptr);
  return types;
}

class Carrying {
public:
  explicit Carrying(Function& function) : function_(function) {
    for (const auto& storage : function.module().storage()) numbers_.emplace(storage.get(), numbers_.size());
    for (const auto& node : function.nodes()) numbers_.emplace(node.get(), numbers_.size());
  }

  int64_t run() {
    find();
    int64_t changed = 0;
    for (auto& [node, demand] : demands_) {
      const Group& group = groups_.at(keyOf(demand));
      if (node->predicate() || node->def().kind == OpKind::View || !worthwhile(group)) continue;
      carried_.push_back(node);
    }
    std::sort(carried_.begin(), carried_.end(), [&](Node* a, Node* b) { return numbers_.at(a) < numbers_.at(b); });
    for (Node* node : carried_) {
      const Value predicate = predicateOf(demands_.at(node));
      node->setPredicate(predicate);
      ++changed;
    }
    if (changed > 0) order();
    return changed;
  }

private:
  GroupKey keyOf(const Demand& demand) const {
    return {numbers_.at(demand.condition.node), demand.condition.index, demand.negated, demand.rows};
  }

  Group& groupOf(const Demand& demand) {
    Group& group = groups_[keyOf(demand)];
    group.demand = demand;
    return group;
  }

  // Handing a value over costs as much as writing and reading it. Half of the work is saved on average, if nothing is
  // known of the condition.
  static bool worthwhile(const Group& group) {
    constexpr double kGuard = 1;  // microseconds
    return group.given || group.work / 2 >= group.passing + kGuard;
  }

  void find() {
    for (auto it = function_.nodes().rbegin(); it != function_.nodes().rend(); ++it) {
      Node& node = **it;
      if (node.op() == Op::Save) continue;
      if (const Value given = node.predicate()) {
        demands_[&node] = {.condition = given, .rows = given.rank() == 1};
        groupOf(demands_[&node]).given = true;
        continue;
      }
      const Demand demand = demandOf(node);
      if (!demand) continue;
      demands_[&node] = demand;
      Group& group = groupOf(demand);
      if (node.def().kind == OpKind::View) continue;
      const std::vector<const Type*> in = operandTypes(node);
      double bytes = 0;
      for (const Type& type : node.types()) bytes += static_cast<double>(type.bytes());
      group.work += roughTime(flopsOf(node.attrs(), in, node.type()), bytes);
      for (const Use& use : node.uses())
        if (chooses(use))
          group.passing += roughTime(0, 2 * static_cast<double>(use.user->input(use.slot).type().bytes()));
    }
  }

  // What all uses have in common.
  Demand demandOf(const Node& node) const {
    Demand common;
    for (const Use& use : node.uses()) {
      if (use.user->function() != &function_) continue;
      const Demand demand = demandOf(use);
      if (!demand || (common && !(common == demand))) return {};
      if (demand.rows && !sameRows(node, demand.condition.type().elements())) return {};
      common = demand;
    }
    return common;
  }

  static bool sameRows(const Node& node, int64_t rows) {
    return std::all_of(node.types().begin(), node.types().end(),
                       [&](const Type& type) { return type.rank() > 0 && type.dim(0) == rows; });
  }

  Demand demandOf(const Use& use) const {
    const Node& user = *use.user;
    if (use.slot == Use::kPredicate || user.op() == Op::Save) return {};
    const auto known = demands_.find(use.user);
    if (known != demands_.end()) {
      if (!known->second.rows || goesByRow(use)) return known->second;
      return {};
    }
    return chooses(use) ? chosenBy(use) : Demand{};
  }

  static bool goesByRow(const Use& use) {
    return readsByRow(use.user->attrs(), operandTypes(*use.user), use.user->type(), static_cast<size_t>(use.slot));
  }

  // Whether a use is one of the two that a choice is between.
  static bool chooses(const Use& use) {
    return use.user->op() == Op::Where && use.slot > 0 && use.user->input(1) != use.user->input(2);
  }

  static Demand chosenBy(const Use& use) {
    Value condition = use.user->input(0);
    const int64_t count = condition.type().elements();
    const bool whole = count == 1;
    // One for each row: its first axis has all the elements.
    const bool rows = count > 1 && condition.rank() == use.user->type().rank() && condition.dim(0) == count &&
                      use.user->type().dim(0) == count && goesByRow(use);
    if (!whole && !rows) return {};
    while (condition.node->op() == Op::Reshape) condition = condition.node->input(0);
    return {.condition = condition, .negated = use.slot == 2, .rows = rows};
  }

  // The condition as a predicate, next to what computes it.
  Value predicateOf(const Demand& demand) {
    Value& found = predicates_[keyOf(demand)];
    if (found) return found;
    const Value condition = demand.condition;
    Node* after = condition.node->isStorage() ? function_.front() : function_.next(condition.node);
    Builder b(function_);
    b.before(after).named(condition.node->name());
    std::vector<int64_t> shape;
    if (demand.rows) shape.push_back(condition.type().elements());
    found = b.reshaped(condition, shape);
    if (demand.negated) found = b.logicalNot(found);
    return found;
  }

  // Nodes that stand before their predicates move to where they are needed first. That is after them: whatever needs
  // them reads the condition.
  void order() {
    std::unordered_map<const Node*, size_t> place;
    std::vector<Node*> nodes;
    for (const auto& node : function_.nodes()) {
      place.emplace(node.get(), nodes.size());
      nodes.push_back(node.get());
    }
    std::unordered_set<const Node*> late, done;
    for (const Node* node : carried_)
      if (const auto it = place.find(node->predicate().node); it != place.end() && it->second > place.at(node))
        late.insert(node);
    if (late.empty()) return;
    for (Node* root : nodes) {
      if (late.contains(root) || done.contains(root)) continue;
      std::vector<std::pair<Node*, int>> stack = {{root, Use::kPredicate}};
      while (!stack.empty()) {
        auto& [node, next] = stack.back();
        if (next == node->inputCount()) {
          if (done.insert(node).second) function_.move(node, nullptr);
          stack.pop_back();
          continue;
        }
        const Value operand = next == Use::kPredicate ? node->predicate() : node->input(next);
        ++next;
        if (operand && !operand.node->isStorage() && !done.contains(operand.node))
          stack.emplace_back(operand.node, Use::kPredicate);
      }
    }
  }

  Function& function_;
  std::unordered_map<const Node*, size_t> numbers_;
  std::unordered_map<Node*, Demand> demands_;
  std::map<GroupKey, Group> groups_;
  std::map<GroupKey, Value> predicates_;
  std::vector<Node*> carried_;
};

Result<bool> carryPredicates(Function& function, PassContext& context) {
  const int64_t carried = Carrying(function).run();
  context.count("carry-predicates", carried);
  return carried > 0;
}

}  // namespace

Pass carryPredicatesPass() {
  return {.name = "carry-predicates",
          .doc = "Gives nodes the predicate of all their uses, or the condition under which a Where chooses them.",
          .run = carryPredicates};
}

}  // namespace aglow
