#include "lower/lower.h"

#include <array>

#include "lower/rules.h"
#include "ops/all_ops.h"
#include "support/quote.h"

namespace aglow {

LowerRule* lowerRule(Op op) {
  static const std::vector<LowerRule*> table = [] {
    std::vector<LowerRule*> rows(allOps().size(), nullptr);
#define AGLOW_ROW(name, function) rows[static_cast<size_t>(Op::name)] = lowering::function;
#include "lower/lower_table.inc"
#undef AGLOW_ROW
    return rows;
  }();
  return table[static_cast<size_t>(op)];
}

namespace {

// The node after lowering: its users read the replacement, and it is gone.
void replaceNode(Function& function, Node* node, const std::vector<Value>& results) {
  for (int i = 0; i < node->resultCount(); ++i) {
    if (node->useCount(i) == 0) continue;
    AGLOW_CHECK(i < static_cast<int>(results.size()) && results[static_cast<size_t>(i)],
                "the rule for " + std::string(node->def().name) + " leaves a result out that is used");
    replaceAllUses(node->result(i), results[static_cast<size_t>(i)]);
  }
  function.erase(node);
}

}  // namespace

Result<bool> lower(Function& function, const KeepComposite& keep) {
  bool changed = false;
  Node* node = function.front();
  while (node != nullptr) {
    if (node->def().kind != OpKind::Composite || (keep && keep(*node))) {
      node = function.next(node);
      continue;
    }
    // What a rule builds stands before the node and may hold composites again, so the walk goes on with the first of
    // it.
    Node* previous = function.previous(node);
    Builder b(function);
    b.before(node).named(node->name()).when(node->predicate());
    const auto results = building([&] { return lowerRule(node->op())(b, *node); });
    if (!results.ok())
      return Error(results.error()).at("node " + quoted(node->name()) + " (" + std::string(node->def().name) + ")");
    replaceNode(function, node, *results);
    node = previous == nullptr ? function.front() : function.next(previous);
    changed = true;
  }
  return changed;
}

}  // namespace aglow
