// The pass that has convolutions of narrow floats computed in f32, which is what their kernels add up in: blocks, tiles
// and Winograd's method serve them as well. Every result is rounded to its kind as before.
#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"

namespace aglow {

namespace {

bool isNarrow(const Node& node) {
  const ElemKind kind = node.type().kind();
  return node.op() == Op::Conv && !node.predicate() && isConstant(node.input(1)) &&
         (kind == ElemKind::Float16 || kind == ElemKind::BFloat16);
}

Result<bool> widenConvs(Function& function, PassContext& context) {
  int64_t widened = 0;
  for (Node* node = function.front(); node != nullptr;) {
    Node* next = function.next(node);
    if (isNarrow(*node)) {
      Builder b(function);
      b.before(node).named(node->name());
      AGLOW_OK(building([&] {
        std::vector<Value> inputs = node->inputs();
        for (Value& in : inputs)
          if (in) in = b.casted(in, ElemKind::Float32);
        const Value wide = b.make(inputs, node->attrs())->result();
        replaceAllUses(node->result(), b.casted(wide, node->type().kind()));
        return true;
      }));
      function.erase(node);
      ++widened;
    }
    node = next;
  }
  context.count("widen-convs", widened);
  return widened > 0;
}

}  // namespace

Pass widenConvsPass() {
  return {.name = "widen-convs", .doc = "Has convolutions of narrow floats computed in f32.", .run = widenConvs};
}

}  // namespace aglow
