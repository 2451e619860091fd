// The pass that multiplies transposed matrices as they lie: on the left, what a product owes its right side has one; on
// the right, weights of torch that the caller hands over.
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

// Whether a value is one matrix in memory of the caller, which is not worth a copy in every run.
bool isCallersMatrix(Value v) {
  constexpr int64_t kLarge = 1 << 14;  // elements
  const Placeholder* place = v ? asPlaceholder(v) : nullptr;
  return place != nullptr && !place->isState() && v.rank() == 2 && v.type().elements() >= kLarge;
}

bool haveSameMatrices(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && std::equal(a.dims().begin(), a.dims().end() - 1, b.dims().begin());
}

}  // namespace

Pass transposedProductsPass(const VectorLayout& layout) {
  return {.name = "transposed-products",
          .doc = "Multiplies transposed matrices as they lie.",
          .run = [layout](Function& function, PassContext& context) -> Result<bool> {
            int64_t count = 0;
            for (Node* node = function.front(); node != nullptr;) {
              Node* const next = function.next(node);
              const bool product = node->op() == Op::MatMul && !node->predicate() && node->type().elements() > 0 &&
                                   node->type().kind() == ElemKind::Float32;
              const Value a = product ? beforeTurn(node->input(0)) : Value{};
              const Value b = product ? beforeTurn(node->input(1)) : Value{};
              const bool whole = product && node->type().dim(node->type().rank() - 1) % layout.lanes == 0;
              const bool left =
                  a && whole && a.type().elements() > 0 && haveSameMatrices(a.shape(), node->input(1).shape());
              const bool right =
                  layout.lanes > 1 && node->inputCount() > 0 && node->input(0).rank() >= 2 && isCallersMatrix(b);
              if (left || right) {
                Builder builder(function);
                builder.before(node).named(node->name());
                AGLOW_OK(building([&] {
                  replaceAllUses(
                      node->result(),
                      left ? builder.transposedMatMul(a, node->input(1))
                           : builder.packedMatMul(node->input(0), builder.reshaped(b, {b.dim(0), b.dim(1), 1}),
                                                  {.n = b.dim(0)}));
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
