// Type rules of normalisations.
#include <fmt/format.h>

#include "ops/axes.h"
#include "ops/type_rules.h"
#include "ops/type_rules_support.h"

namespace aglow::infer {

namespace {

// One value a channel (axis 1) in each of the operands after x.
Status checkChannelOperands(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 2));
  for (int i = 1; i < c.op.in.size(); ++i) AGLOW_OK(checkShape(c, i, Shape{c.type(0).dim(1)}));
  return {};
}

// The axis of an attribute that may count from the end.
Result<int> axisOf(const InferContext& c) {
  const Shape& shape = c.type(0).shape();
  const int64_t axis = c.attrs.integer("axis");
  const int64_t front = axisFromFront(axis, shape.rank());
  if (!checkAxis("axis", front, shape).ok()) return checkAxis("axis", axis, shape).error();
  return static_cast<int>(front);
}

// An operand that broadcasts to x without making it larger.
Status checkStretches(const InferContext& c, int operand) {
  const Shape& x = c.type(0).shape();
  const Result<Shape> common = broadcastShapes(x, c.type(operand).shape());
  if (common.ok() && *common == x) return {};
  return badNode(fmt::format("expected a shape of '{}' that broadcasts to {}, got {}", c.op.in[operand].name, x.text(),
                             c.type(operand).text()));
}

}  // namespace

Types softmax(const InferContext& c) {
  AGLOW_OK(axisOf(c));
  return std::vector{c.type(0)};
}

Types batchNorm(const InferContext& c) {
  AGLOW_OK(checkChannelOperands(c));
  return std::vector{c.type(0)};
}

Types layerNorm(const InferContext& c) {
  const Type& x = c.type(0);
  AGLOW_TRY(const int axis, axisOf(c));
  AGLOW_OK(checkStretches(c, 1));
  if (c.has(2)) AGLOW_OK(checkStretches(c, 2));
  std::vector<int64_t> dims = x.shape().dims();
  std::fill(dims.begin() + axis, dims.end(), 1);
  const ElemKind wide = x.kind() == ElemKind::Float64 ? ElemKind::Float64 : ElemKind::Float32;
  const Type statistics(wide, Shape(std::move(dims)));
  return std::vector{x, statistics, statistics};
}

Types rmsNorm(const InferContext& c) {
  AGLOW_OK(axisOf(c));
  AGLOW_OK(checkStretches(c, 1));
  return std::vector{c.type(0)};
}

Types instanceNorm(const InferContext& c) {
  AGLOW_OK(checkChannelOperands(c));
  return std::vector{c.type(0)};
}

Types groupNorm(const InferContext& c) {
  AGLOW_OK(checkChannelOperands(c));
  const int64_t groups = c.attrs.integer("groups");
  if (groups < 1 || c.type(0).dim(1) % groups != 0)
    return badNode(fmt::format("expected 'groups' that divide the channels of {}, got {}", c.type(0).text(), groups));
  return std::vector{c.type(0)};
}

Types lrn(const InferContext& c) {
  AGLOW_OK(checkRank(c, 0, 2));
  if (c.attrs.integer("size") < 1)
    return badNode(fmt::format("expected 'size' to be at least 1, got {}", c.attrs.integer("size")));
  return std::vector{c.type(0)};
}

}  // namespace aglow::infer
