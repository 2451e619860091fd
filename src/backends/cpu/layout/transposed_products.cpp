// The pass that multiplies transposed left matrices as they lie: what a product owes its right side has one.
#include <algorithm>

#include "backends/cpu/layout/layout.h"
#include "graph/builder.h"

namespace aglow {

namespace {

// The matrices that a value holds transposed, or nothing.
Value beforeTurn(Value v) {
  if (v.node->op() != Op::Transpose || v.node->predicate() || v.rank() < 2) return {};
  std::vector<int64_t> perm = v.node->attrs().ints("perm");
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return std::is_sorted(perm.begin(), perm.end()) ? v.node->input(0) : Value{};
}

bool haveSameMatrices(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && std::equal(a.dims().begin(), a.dims().end() - 1, b.dims().begin());
}

}  // namespace

Pass transposedProductsPass(const VectorLayout& layout) {
  return {.name = "transposed-products",
          .doc = "Multiplies transposed left matrices as they lie.",
          .run = [layout](Function& function, PassContext& context) -> Result<bool> {
            int64_t count = 0;
            for (Node* node = function.front(); node != nullptr;) {
              Node* const next = function.next(node);
              const bool product = node->op() == Op::MatMul && !node->predicate() && node->type().elements() > 0 &&
                                   node->type().kind() == ElemKind::Float32;
              const Value a = product ? beforeTurn(node->input(0)) : Value{};
              const bool whole = product && node->type().dim(node->type().rank() - 1) % layout.lanes == 0;
              if (a && whole && a.type().elements() > 0 && haveSameMatrices(a.shape(), node->input(1).shape())) {
                Builder b(function);
                b.before(node).named(node->name());
                AGLOW_OK(building([&] {
                  replaceAllUses(node->result(), b.transposedMatMul(a, node->input(1)));
                  return true;
                }));
                function.erase(node);
                ++count;
              }
              node = next;
            }
            context.count("transposed-products", count);
            return count > 0;
          }};
}

}  // namespace aglow
