// The pass that packs right sides that are not known when compiling and that several products share, as the weights of
// a recurrent layer that trains: each once in a run, instead of in every product.
#include <unordered_map>

#include "backends/cpu/layout/layout.h"
#include "backends/cpu/layout/run_time_packing.h"

namespace aglow {

namespace {

bool sharesMatrix(const Node& node) {
  return node.op() == Op::MatMul && !node.predicate() && node.type().kind() == ElemKind::Float32 &&
         node.type().elements() > 0 && node.input(1).rank() == 2 && node.input(1).type().elements() > 0 &&
         !isConstant(node.input(1));
}

Result<bool> packShared(Function& function, PassContext& context, int64_t panel) {
  constexpr int64_t kMostlyEmpty = 4;
  struct Products {
    Value matrix;
    std::vector<Node*> nodes;  // in the order of the function
  };
  std::vector<Products> all;
  std::unordered_map<const Node*, size_t> found;
  for (Node* node = function.front(); node != nullptr; node = function.next(node)) {
    if (!sharesMatrix(*node) || kMostlyEmpty * node->input(1).dim(1) < panel) continue;
    const Value matrix = node->input(1);
    if (matrix.index != 0) continue;
    const auto [at, isNew] = found.emplace(matrix.node, all.size());
    if (isNew) all.push_back({.matrix = matrix, .nodes = {}});
    all[at->second].nodes.push_back(node);
  }
  int64_t packed = 0;
  for (const Products& products : all) {
    if (products.nodes.size() < 2) continue;
    Builder b(function);
    b.before(products.nodes.front()).named(products.nodes.front()->name());
    Value panels;
    AGLOW_OK(building([&] {
      panels = packMatrixAtRunTime(b, products.matrix, panel);
      return true;
    }));
    for (Node* product : products.nodes) {
      b.before(product).named(product->name());
      AGLOW_OK(building([&] {
        const Value y = b.packedMatMul(product->input(0), panels, {.n = products.matrix.dim(1)});
        replaceAllUses(product->result(), b.reshaped(y, product->type().shape().dims()));
        return true;
      }));
      function.erase(product);
      ++packed;
    }
  }
  context.count("pack-shared", packed);
  return packed > 0;
}

}  // namespace

Pass packSharedPass(const VectorLayout& layout) {
  return {.name = "pack-shared",
          .doc = "Packs computed right sides that several matrix products share, once in a run.",
          .run = [panel = int64_t{2} * layout.lanes](Function& function, PassContext& context) {
            return packShared(function, context, panel);
          }};
}

}  // namespace aglow
