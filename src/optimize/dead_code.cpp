// Dead code: from the last node to the first, so that one walk finds whole chains.
#include "optimize/passes.h"

namespace aglow {

namespace {

Result<bool> removeDeadCode(Function& function, PassContext& context) {
  int64_t erased = 0;
  for (Node* node = function.nodes().empty() ? nullptr : function.nodes().back().get(); node != nullptr;) {
    Node* previous = function.previous(node);
    if (node->uses().empty() && node->op() != Op::Save) {
      function.erase(node);
      ++erased;
    }
    node = previous;
  }
  Module& module = function.module();
  for (Constant* constant : module.constants())
    if (constant->uses().empty()) {
      module.eraseStorage(constant);
      ++erased;
    }
  context.count("dead-code", erased);
  return erased > 0;
}

}  // namespace

Pass deadCodePass() {
  return {.name = "dead-code",
          .doc = "Erases nodes whose results nobody reads, and constants that nobody uses.",
          .run = removeDeadCode};
}

}  // namespace aglow
