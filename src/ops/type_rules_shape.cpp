// Type rules of operators that move elements. Where scales belong to an axis, they move with it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axes.h"
#include "ops/type_rules.h"
#include "ops/type_rules_support.h"
#include "support/sizes.h"

namespace aglow::infer {

namespace {

// The result's type where scales may have moved to another axis or become others.
Types moved(const Type& x, Shape shape, QuantParams quant) {
  if (!isQuantized(x.kind()) || quant.scales.empty()) return std::vector{Type(x.kind(), std::move(shape))};
  AGLOW_TRY(Type type, Type::quantized(x.kind(), std::move(shape), std::move(quant)));
  return std::vector{std::move(type)};
}

int64_t elementsBefore(const Shape& shape, int axis) {
  int64_t count = 1;
  for (int i = 0; i < axis; ++i) count *= shape[i];
  return count;
}

Status checkPlain(std::string_view name, ElemKind kind) {
  if (!isQuantized(kind)) return {};
  return badNode(fmt::format("expected '{}' not to be a quantized kind, got {}", name, elemName(kind)));
}

}  // namespace

Types cast(const InferContext& c) {
  AGLOW_OK(checkPlain("to", c.attrs.elem("to")));
  return std::vector{c.type(0).withKind(c.attrs.elem("to"))};
}

Types bitcast(const InferContext& c) {
  const ElemKind from = c.type(0).kind(), to = c.attrs.elem("to");
  AGLOW_OK(checkPlain("to", to));
  if (elemInfo(from).bits != elemInfo(to).bits || elemBytes(from) != elemBytes(to))
    return badNode(fmt::format("expected a kind as wide as {}, got {}", elemName(from), elemName(to)));
  return std::vector{c.type(0).withKind(to)};
}

Types splat(const InferContext& c) {
  AGLOW_OK(checkPlain("elem", c.attrs.elem("elem")));
  AGLOW_TRY(Shape shape, computedShape(c.attrs.ints("shape")));
  return std::vector{Type(c.attrs.elem("elem"), std::move(shape))};
}

Types reshape(const InferContext& c) {
  const Type& x = c.type(0);
  AGLOW_TRY(Shape shape, computedShape(c.attrs.ints("shape")));
  if (shape.elements() != x.elements())
    return badNode(fmt::format("expected a shape with {} elements as in {}, got {} with {}", x.elements(), x.text(),
                               shape.text(), shape.elements()));
  QuantParams quant = x.quant();
  if (quant.axis >= 0) {
    const int64_t before = elementsBefore(x.shape(), quant.axis);
    int axis = 0;
    while (axis < shape.rank() && (elementsBefore(shape, axis) != before || shape[axis] != x.dim(quant.axis))) ++axis;
    if (axis == shape.rank())
      return badQuantization(
          fmt::format("expected a shape that keeps axis {} of {}, got {}", quant.axis, x.text(), shape.text()));
    quant.axis = axis;
  }
  return moved(x, std::move(shape), std::move(quant));
}

Types transpose(const InferContext& c) {
  const Type& x = c.type(0);
  const std::vector<int64_t>& perm = c.attrs.ints("perm");
  AGLOW_OK(checkLength("perm", perm, x.rank()));
  std::vector<bool> seen(perm.size(), false);
  std::vector<int64_t> dims;
  QuantParams quant = x.quant();
  for (size_t i = 0; i < perm.size(); ++i) {
    AGLOW_OK(checkAxis("perm", perm[i], x.shape()));
    if (seen[static_cast<size_t>(perm[i])])
      return badNode(fmt::format("expected 'perm' to name every axis once, got [{}]", fmt::join(perm, ",")));
    seen[static_cast<size_t>(perm[i])] = true;
    dims.push_back(x.dim(static_cast<int>(perm[i])));
    if (perm[i] == x.quant().axis) quant.axis = static_cast<int>(i);
  }
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return moved(x, std::move(shape), std::move(quant));
}

Types slice(const InferContext& c) {
  const Type& x = c.type(0);
  const std::vector<int64_t>& starts = c.attrs.ints("starts");
  const std::vector<int64_t>& sizes = c.attrs.ints("sizes");
  const std::vector<int64_t> steps = filled(c.attrs.ints("steps"), x.rank(), 1);
  AGLOW_OK(checkLength("starts", starts, x.rank()));
  AGLOW_OK(checkLength("sizes", sizes, x.rank()));
  AGLOW_OK(checkLength("steps", steps, x.rank()));
  AGLOW_OK(checkAtLeast("sizes", sizes, 0));
  QuantParams quant = x.quant();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    const int64_t extent = x.dim(axis);
    if (steps[a] == 0) return badNode(fmt::format("expected steps other than 0, got 0 along axis {}", axis));
    if (sizes[a] > 0) {
      const auto span = checkedMul(sizes[a] - 1, steps[a]);
      const auto last = span ? checkedAdd(starts[a], *span) : span;
      if (starts[a] < 0 || starts[a] >= extent || !last || *last < 0 || *last >= extent)
        return badNode(fmt::format("expected elements inside of axis {} of {}, got {} from {} in steps of {}", axis,
                                   x.text(), sizes[a], starts[a], steps[a]));
    }
    if (axis != quant.axis) continue;
    quant.scales.clear();
    quant.offsets.clear();
    for (int64_t j = 0; j < sizes[a]; ++j) {
      quant.scales.push_back(x.quant().scales[static_cast<size_t>(starts[a] + j * steps[a])]);
      quant.offsets.push_back(x.quant().offsets[static_cast<size_t>(starts[a] + j * steps[a])]);
    }
  }
  AGLOW_TRY(Shape shape, computedShape(sizes));
  return moved(x, std::move(shape), std::move(quant));
}

Types concat(const InferContext& c) {
  const Type& first = c.type(0);
  const int64_t axis = c.attrs.integer("axis");
  AGLOW_OK(checkAxis("axis", axis, first.shape()));
  std::vector<int64_t> dims = first.shape().dims();
  QuantParams quant = first.quant();
  for (size_t i = 1; i < c.in.size(); ++i) {
    const Type& next = *c.in[i];
    bool agree = next.rank() == first.rank();
    for (int a = 0; agree && a < first.rank(); ++a) agree = a == axis || next.dim(a) == first.dim(a);
    if (!agree)
      return badNode(
          fmt::format("expected operands that agree but for axis {}, got {} and {}", axis, first.text(), next.text()));
    const auto sum = checkedAdd(dims[static_cast<size_t>(axis)], next.dim(static_cast<int>(axis)));
    if (!sum) return badNode("the operands together are too long");
    dims[static_cast<size_t>(axis)] = *sum;
    if (quant.axis == axis && next.quant().axis == axis) {
      quant.scales.insert(quant.scales.end(), next.quant().scales.begin(), next.quant().scales.end());
      quant.offsets.insert(quant.offsets.end(), next.quant().offsets.begin(), next.quant().offsets.end());
    } else if (next.quant() != first.quant()) {
      return badQuantization(
          fmt::format("expected operands with the same parameters, got {} and {}", first.text(), next.text()));
    }
  }
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return moved(first, std::move(shape), std::move(quant));
}

Types pad(const InferContext& c) {
  const Type& x = c.type(0);
  const std::vector<int64_t>& before = c.attrs.ints("before");
  const std::vector<int64_t>& after = c.attrs.ints("after");
  AGLOW_OK(checkShape(c, 1, Shape{}));
  AGLOW_OK(checkLength("before", before, x.rank()));
  AGLOW_OK(checkLength("after", after, x.rank()));
  AGLOW_OK(checkAtLeast("before", before, 0));
  AGLOW_OK(checkAtLeast("after", after, 0));
  std::vector<int64_t> dims;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto front = checkedAdd(x.dim(axis), before[static_cast<size_t>(axis)]);
    const auto both = front ? checkedAdd(*front, after[static_cast<size_t>(axis)]) : front;
    if (!both) return badNode(fmt::format("the padding along axis {} is too large", axis));
    dims.push_back(*both);
  }
  AGLOW_TRY(Shape shape, computedShape(std::move(dims)));
  return std::vector{x.withShape(std::move(shape))};
}

}  // namespace aglow::infer
