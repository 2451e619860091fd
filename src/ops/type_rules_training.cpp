// Type rules of training: regressions, requests for gradients, optimizers.
#include "ops/type_rules.h"
#include "ops/type_rules_support.h"

namespace aglow::infer {

Types gradient(const InferContext& c) { return std::vector{c.type(1)}; }

Types regression(const InferContext& c) {
  AGLOW_OK(checkShape(c, 1, c.type(0).shape()));
  return std::vector{c.type(0)};
}

// The variable, its gradient and what is remembered of it, each of one shape, then numbers. All but the gradient are
// given back.
Types optimizer(const InferContext& c) {
  for (int i = 1; i < c.op.in.size(); ++i)
    AGLOW_OK(checkShape(c, i, i <= c.op.out.size() ? c.type(0).shape() : Shape{}));
  return std::vector<Type>(static_cast<size_t>(c.op.out.size()), c.type(0));
}

}  // namespace aglow::infer
