// Type rules of elementwise operators.
#include <fmt/format.h>

#include "ops/type_rules.h"
#include "ops/type_rules_support.h"

namespace aglow::infer {

namespace {

Result<Shape> commonShape(const InferContext& c) {
  Shape shape = c.type(0).shape();
  for (size_t i = 1; i < c.in.size(); ++i) {
    AGLOW_TRY(shape, broadcastBoth(shape, c.in[i]->shape()));
  }
  return shape;
}

}  // namespace

Types broadcast(const InferContext& c) {
  AGLOW_TRY(Shape shape, commonShape(c));
  for (int i = 0; i < c.op.in.size(); ++i)
    if (c.op.in[i].typeVar == 'T') return std::vector{Type(c.type(i).kind(), std::move(shape))};
  AGLOW_CHECK(false, "no operand gives the element kind of " + std::string(c.op.name));
}

Types broadcastToBool(const InferContext& c) {
  AGLOW_TRY(Shape shape, commonShape(c));
  return std::vector{Type(ElemKind::Bool, std::move(shape))};
}

Types expand(const InferContext& c) {
  AGLOW_TRY(const Shape wanted, computedShape(c.attrs.ints("shape")));
  AGLOW_TRY(const Shape common, broadcastBoth(c.type(0).shape(), wanted));
  if (common != wanted)
    return badNode(fmt::format("expected a shape to which {} broadcasts, got {}", c.type(0).text(), wanted.text()));
  return std::vector{c.type(0).withShape(wanted)};
}

}  // namespace aglow::infer
