// The pass that packs constant right sides of matrix products, each once for all products by it.
#include "backends/cpu/kernels/gemm/pack.h"
#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"

namespace aglow {

namespace {

// One f32 matrix, with columns enough that panels are not mostly empty.
bool isPackable(const Type& type, int64_t panel) {
  constexpr int64_t kMostlyEmpty = 4;
  if (type.kind() != ElemKind::Float32 || type.rank() < 2) return false;
  const int64_t k = type.dim(type.rank() - 2), n = type.dim(type.rank() - 1);
  return type.elements() == k * n && k > 0 && kMostlyEmpty * n >= panel;
}

// The products that a value is the right side of.
std::vector<Node*> productsBy(const Node& b, const Function& function) {
  std::vector<Node*> products;
  for (const Use& use : b.uses())
    if (use.user->op() == Op::MatMul && use.user->function() == &function && use.slot == 1 && !use.user->predicate() &&
        use.user->type().elements() > 0)
      products.push_back(use.user);
  return products;
}

Result<bool> packWeights(Function& function, PassContext& context, int64_t panel) {
  int64_t packed = 0;
  for (Constant* constant : function.module().constants()) {
    const Type& type = constant->type();
    if (!isPackable(type, panel)) continue;
    const std::vector<Node*> products = productsBy(*constant, function);
    if (products.empty()) continue;
    const int64_t k = type.dim(type.rank() - 2), n = type.dim(type.rank() - 1);
    const Tensor matrix = constant->tensor().retyped(type.withShape(Shape{k, n}));
    Constant* panels = function.module().addConstant(constant->name(), cpu::packMatrix(matrix, panel));
    for (Node* product : products) {
      Builder b(function);
      b.before(product).named(product->name());
      AGLOW_OK(building([&] {
        const Value y = b.packedMatMul(product->input(0), panels->result(), {.n = n});
        replaceAllUses(product->result(), b.reshaped(y, product->type().shape().dims()));
        return true;
      }));
      function.erase(product);
      ++packed;
    }
    // Large weights do not wait for the end to be freed.
    if (constant->uses().empty()) function.module().eraseStorage(constant);
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
