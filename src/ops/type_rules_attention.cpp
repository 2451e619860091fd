// Type rule of attention.
#include <fmt/format.h>

#include "ops/type_rules.h"
#include "ops/type_rules_support.h"

namespace aglow::infer {

namespace {

// A mask of truth values or addends that broadcasts to the scores.
Status checkMask(const InferContext& c, const Shape& scores, ElemKind addend) {
  const Type& mask = c.type(3);
  if (mask.kind() != ElemKind::Bool && mask.kind() != addend)
    return badNode(fmt::format("expected 'mask' of kind bool or {}, got {}", elemName(addend), mask.text()));
  const Result<Shape> common = broadcastShapes(scores, mask.shape());
  if (common.ok() && *common == scores) return {};
  return badNode(fmt::format("expected a shape of 'mask' that broadcasts to {}, got {}", scores.text(), mask.text()));
}

struct Shapes {
  Shape result, scores;
};

// Scores are of a kind that the mask may add to.
Result<Shapes> shapesOf(const InferContext& c, ElemKind scoreKind) {
  const Type &q = c.type(0), &k = c.type(1), &v = c.type(2);
  for (int i = 0; i < 3; ++i)
    if (c.type(i).rank() != 4)
      return badNode(
          fmt::format("expected '{}' as [batch, heads, length, width], got {}", c.op.in[i].name, c.type(i).text()));
  const int64_t heads = q.dim(1), groups = k.dim(1);
  const bool agree = k.dim(0) == q.dim(0) && k.dim(3) == q.dim(3) && v.dim(0) == k.dim(0) && v.dim(1) == groups &&
                     v.dim(2) == k.dim(2);
  if (!agree || (groups == 0 ? heads != 0 : heads % groups != 0))
    return badNode(fmt::format("expected q [b, h, l, d], k [b, h / g, s, d] and v [b, h / g, s, e], got {}, {} and {}",
                               q.text(), k.text(), v.text()));
  constexpr int64_t kLimit = int64_t{1} << 40;  // sums of positions stay in range
  for (const std::string_view name : {"left", "right"})
    if (c.attrs.integer(name) < -1 || c.attrs.integer(name) > kLimit)
      return badNode(fmt::format("expected '{}' to be -1 or a distance, got {}", name, c.attrs.integer(name)));
  if (const int64_t offset = c.attrs.integer("offset"); offset < -kLimit || offset > kLimit)
    return badNode(fmt::format("expected 'offset' to be a distance, got {}", offset));
  AGLOW_TRY(Shape scores, computedShape({q.dim(0), heads, q.dim(2), k.dim(2)}));
  AGLOW_TRY(Shape result, computedShape({q.dim(0), heads, q.dim(2), v.dim(3)}));
  if (c.has(3)) AGLOW_OK(checkMask(c, scores, scoreKind));
  return Shapes{std::move(result), std::move(scores)};
}

}  // namespace

Types attention(const InferContext& c) {
  const Type& q = c.type(0);
  AGLOW_TRY(Shapes shapes, shapesOf(c, q.kind()));
  if (!isFloat(c.attrs.elem("precision")))
    return badNode(fmt::format("expected 'precision' to be a float kind, got {}", elemName(c.attrs.elem("precision"))));
  return std::vector{q.withShape(std::move(shapes.result)), q.withShape(std::move(shapes.scores))};
}

Types byteAttention(const InferContext& c) {
  AGLOW_TRY(Shapes shapes, shapesOf(c, ElemKind::Float32));
  for (const std::string_view name : {"q_offset", "k_offset", "v_offset"}) AGLOW_OK(checkByteOffset(c, name));
  return std::vector{Type(ElemKind::Float32, std::move(shapes.result))};
}

}  // namespace aglow::infer
