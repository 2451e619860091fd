// The pass that has convolutions, products and pools of narrow floats computed in f32, which is what their kernels
// compute in: the fast ones serve them as well. Every result is rounded to its kind as before.
#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"

namespace aglow {

namespace {

bool isNarrow(const Node& node) {
  const bool fast = (node.op() == Op::Conv && isConstant(node.input(1))) || node.op() == Op::MatMul ||
                    node.op() == Op::MaxPool || node.op() == Op::AvgPool;
  if (!fast || node.predicate()) return false;
  const ElemKind kind = node.type().kind();
  return kind == ElemKind::Float16 || kind == ElemKind::BFloat16;
}

Result<bool> widenFloats(Function& function, PassContext& context) {
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
  context.count("widen-floats", widened);
  return widened > 0;
}

}  // namespace

Pass widenFloatsPass() {
  return {.name = "widen-floats",
          .doc = "Has convolutions, products and pools of narrow floats computed in f32.",
          .run = widenFloats};
}

}  // namespace aglow
