#include "graph/saves.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace aglow {

namespace {

bool isTarget(const Node& node, int slot) { return node.op() == Op::Save && slot == 1; }

}  // namespace

void settleSaves(Function& function) {
  const auto isRead = [&](const Node& place) {
    return std::any_of(place.uses().begin(), place.uses().end(), [&](const Use& use) {
      return use.user->function() == &function && !isTarget(*use.user, use.slot);
    });
  };
  std::unordered_map<const Node*, Value> saved;  // what placeholders hold from here on
  std::vector<Node*> late;
  for (const auto& node : function.nodes()) {
    for (int i = Use::kPredicate; i < node->inputCount(); ++i) {
      const Value operand = i == Use::kPredicate ? node->predicate() : node->input(i);
      const auto it = operand ? saved.find(operand.node) : saved.end();
      if (it == saved.end() || isTarget(*node, i)) continue;
      if (i == Use::kPredicate)
        node->setPredicate(it->second);
      else
        node->setInput(i, it->second);
    }
    if (node->op() != Op::Save) continue;
    const Node* target = node->input(1).node;
    if (!isRead(*target)) continue;
    saved[target] = node->input(0);
    late.push_back(node.get());
  }
  for (Node* save : late) function.move(save, nullptr);
}

}  // namespace aglow
