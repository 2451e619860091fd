// Type rules of operators along axes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/type_rules.h"
#include "ops/type_rules_support.h"

namespace aglow::infer {

Types reduce(const InferContext& c) {
  const Type& x = c.type(0);
  const std::string& kind = c.attrs.word("kind");
  if (x.kind() == ElemKind::Bool && kind != "max" && kind != "min")
    return badNode(fmt::format("expected 'kind' max (any) or min (all) for {}, got {}", x.text(), kind));
  const std::vector<int64_t>& axes = c.attrs.ints("axes");
  std::vector<bool> reduced(static_cast<size_t>(x.rank()), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    AGLOW_OK(checkAxis("axes", axes[i], x.shape()));
    if (i > 0 && axes[i] <= axes[i - 1])
      return badNode(fmt::format("expected 'axes' in ascending order, got [{}]", fmt::join(axes, ",")));
    reduced[static_cast<size_t>(axes[i])] = true;
  }
  std::vector<int64_t> dims;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!reduced[static_cast<size_t>(axis)])
      dims.push_back(x.dim(axis));
    else if (c.attrs.flag("keepdims"))
      dims.push_back(1);
  }
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return std::vector{x.withShape(std::move(shape))};
}

Types argReduce(const InferContext& c) {
  const Type& x = c.type(0);
  const int64_t axis = c.attrs.integer("axis");
  AGLOW_OK(checkAxis("axis", axis, x.shape()));
  if (x.dim(static_cast<int>(axis)) == 0)
    return badNode(fmt::format("expected elements along axis {}, got {}", axis, x.text()));
  std::vector<int64_t> dims = x.shape().dims();
  if (c.attrs.flag("keepdims"))
    dims[static_cast<size_t>(axis)] = 1;
  else
    dims.erase(dims.begin() + axis);
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return std::vector{Type(ElemKind::Int64, std::move(shape))};
}

Types scan(const InferContext& c) {
  AGLOW_OK(checkAxis("axis", c.attrs.integer("axis"), c.type(0).shape()));
  return std::vector{c.type(0)};
}

Types topK(const InferContext& c) {
  const Type& x = c.type(0);
  const int64_t axis = c.attrs.integer("axis");
  const int64_t k = c.attrs.integer("k");
  AGLOW_OK(checkAxis("axis", axis, x.shape()));
  if (k < 0 || k > x.dim(static_cast<int>(axis)))
    return badNode(fmt::format("expected 'k' from 0 to the extent of axis {} of {}, got {}", axis, x.text(), k));
  std::vector<int64_t> dims = x.shape().dims();
  dims[static_cast<size_t>(axis)] = k;
  AGLOW_TRY(const Shape shape, computedShape(std::move(dims)));
  return std::vector{x.withShape(shape), Type(ElemKind::Int64, shape)};
}

}  // namespace aglow::infer
