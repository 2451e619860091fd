// Checks shared by the type rules, and the reading of sliding windows.
#include "ops/type_rules_support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/axes.h"
#include "ops/window.h"
#include "support/sizes.h"

namespace aglow {

namespace infer {

Error badNode(std::string message) { return {.code = Code::BadNode, .message = std::move(message)}; }
Error badQuantization(std::string message) { return {.code = Code::BadQuantization, .message = std::move(message)}; }

Result<Shape> computedShape(std::vector<int64_t> dims) {
  Result<Shape> shape = Shape::create(std::move(dims));
  if (!shape.ok()) return badNode(shape.error().message);
  return shape;
}

Result<Shape> broadcastBoth(const Shape& a, const Shape& b) {
  Result<Shape> shape = broadcastShapes(a, b);
  if (!shape.ok()) return badNode(shape.error().message);
  return shape;
}

Status checkAxis(std::string_view name, int64_t axis, const Shape& shape) {
  if (axis >= 0 && axis < shape.rank()) return {};
  return badNode(fmt::format("expected '{}' to be an axis of {}, got {}", name, shape.text(), axis));
}

Status checkLength(std::string_view name, const std::vector<int64_t>& list, int expected) {
  if (static_cast<int>(list.size()) == expected) return {};
  return badNode(fmt::format("expected {} entries in '{}', got [{}]", expected, name, fmt::join(list, ",")));
}

Status checkAtLeast(std::string_view name, const std::vector<int64_t>& list, int64_t least) {
  for (const int64_t entry : list)
    if (entry < least)
      return badNode(fmt::format("expected entries of '{}' to be at least {}, got {}", name, least, entry));
  return {};
}

Status checkRank(const InferContext& c, int operand, int least) {
  const Type& type = c.type(operand);
  if (type.rank() >= least) return {};
  return badNode(fmt::format("expected at least {} axes in '{}', got {}", least, c.op.in[operand].name, type.text()));
}

Status checkByteOffset(const InferContext& c, std::string_view name) {
  constexpr int64_t kMost = 255;
  const int64_t offset = c.attrs.integer(name);
  if (offset >= -kMost && offset <= kMost) return {};
  return badNode(fmt::format("expected '{}' from {} to {}, got {}", name, -kMost, kMost, offset));
}

Status checkShape(const InferContext& c, int operand, const Shape& expected) {
  const Type& type = c.type(operand);
  if (type.shape() == expected) return {};
  return badNode(fmt::format("expected shape {} of '{}', got {}", expected.text(), c.op.in[operand].name, type.text()));
}

}  // namespace infer

Result<Window> windowOf(const Attrs& attrs, std::vector<int64_t> kernel) {
  const int axes = static_cast<int>(kernel.size());
  const auto listOf = [&](std::string_view name, int length, int64_t value) {
    return filled(attrs.indexOf(name) < 0 ? std::vector<int64_t>{} : attrs.ints(name), length, value);
  };
  const std::vector<int64_t> pads = listOf("pads", 2 * axes, 0);
  Window window{
      .kernel = std::move(kernel), .strides = listOf("strides", axes, 1), .dilations = listOf("dilations", axes, 1)};
  AGLOW_OK(infer::checkAtLeast("kernel", window.kernel, 1));
  AGLOW_OK(infer::checkLength("strides", window.strides, axes));
  AGLOW_OK(infer::checkAtLeast("strides", window.strides, 1));
  AGLOW_OK(infer::checkLength("dilations", window.dilations, axes));
  AGLOW_OK(infer::checkAtLeast("dilations", window.dilations, 1));
  AGLOW_OK(infer::checkLength("pads", pads, 2 * axes));
  AGLOW_OK(infer::checkAtLeast("pads", pads, 0));
  window.before.assign(pads.begin(), pads.begin() + axes);
  window.after.assign(pads.begin() + axes, pads.end());
  // So that sums and products of an extent and the window's parts need no further checks.
  constexpr int64_t kLimit = int64_t{1} << 31;
  for (const auto& list : {window.kernel, window.strides, window.dilations, pads})
    for (const int64_t entry : list)
      if (entry > kLimit)
        return infer::badNode(fmt::format("expected a window with parts of at most {}, got {}", kLimit, entry));
  AGLOW_OK(infer::computedShape(window.kernel));
  return window;
}

Result<std::vector<int64_t>> wholeWindows(const Window& window, const Shape& x) {
  std::vector<int64_t> counts;
  for (int axis = 0; axis < window.axes(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    const int64_t padded = x[axis + 2] + window.before[a] + window.after[a];
    if (padded < window.reach(axis))
      return infer::badNode(
          fmt::format("expected a window that fits into the padded input, got a reach of {} against {} "
                      "along spatial axis {}",
                      window.reach(axis), padded, axis));
    counts.push_back((padded - window.reach(axis)) / window.strides[a] + 1);
  }
  return counts;
}

}  // namespace aglow
