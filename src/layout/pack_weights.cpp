// The pass that packs constant right sides of matrix products.
#include <map>

#include "graph/builder.h"
#include "kernels/gemm/pack.h"
#include "layout/layout.h"
#include "support/sizes.h"

namespace aglow {

namespace {

// One f32 matrix known when compiling, with columns enough that panels are not mostly empty.
bool isPackable(const Node& node, int64_t panel) {
  constexpr int64_t kMostlyEmpty = 4;
  if (node.op() != Op::MatMul || node.predicate() || node.type().kind() != ElemKind::Float32) return false;
  const Value b = node.input(1);
  const int64_t k = b.dim(b.rank() - 2), n = b.dim(b.rank() - 1);
  return b.type().elements() == k * n && k > 0 && kMostlyEmpty * n >= panel && isConstant(b) &&
         node.type().elements() > 0;
}

Result<bool> packWeights(Function& function, PassContext& context, int64_t panel) {
  int64_t packed = 0;
  for (Node* node = function.front(); node != nullptr;) {
    Node* next = function.next(node);
    if (isPackable(*node, panel)) {
      const Value b = node->input(1);
      const Tensor& known = asConstant(b)->tensor();
      const int64_t k = b.dim(b.rank() - 2), n = b.dim(b.rank() - 1);
      const Tensor matrix = known.retyped(known.type().withShape(Shape{k, n}));
      Builder builder(function);
      builder.before(node).named(node->name());
      AGLOW_OK(building([&] {
        const Value y =
            builder.packedMatMul(node->input(0), builder.constant(cpu::packMatrix(matrix, panel)), {.n = n});
        replaceAllUses(node->result(), builder.reshaped(y, node->type().shape().dims()));
        return true;
      }));
      function.erase(node);
      // Large weights do not wait for the end to be freed.
      if (b.node->uses().empty()) function.module().eraseStorage(b.node);
      ++packed;
    }
    node = next;
  }
  context.count("pack-weights", packed);
  return packed > 0;
}

}  // namespace

Pass packWeightsPass(const VectorLayout& layout) {
  const int64_t panel = 2 * layout.lanes;
  return {.name = "pack-weights",
          .doc = "Packs constant right sides of matrix products in panels.",
          .run = [panel](Function& function, PassContext& context) { return packWeights(function, context, panel); }};
}

}  // namespace aglow
