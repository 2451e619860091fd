// What type rules have in common: errors, shapes computed from attributes, and checks of axes, lists and operands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/attrs.h"
#include "ops/op_def.h"

namespace aglow::infer {

using Types = Result<std::vector<Type>>;

Error badNode(std::string message);
Error badQuantization(std::string message);

// Extents computed from attributes; BadNode when they are not valid.
Result<Shape> computedShape(std::vector<int64_t> dims);
// numpy's rule over two shapes, all faults BadNode.
Result<Shape> broadcastBoth(const Shape& a, const Shape& b);

Status checkAxis(std::string_view name, int64_t axis, const Shape& shape);
Status checkLength(std::string_view name, const std::vector<int64_t>& list, int expected);
Status checkAtLeast(std::string_view name, const std::vector<int64_t>& list, int64_t least);
Status checkRank(const InferContext& c, int operand, int least);
Status checkShape(const InferContext& c, int operand, const Shape& expected);
// That an attribute is the byte which stands for zero, or one that a shift by 128 makes of it.
Status checkByteOffset(const InferContext& c, std::string_view name);

}  // namespace aglow::infer
