// Small pieces of graph and arithmetic on shapes that handlers of many operators share.
#pragma once

#include <string>
#include <vector>

#include "graph/wide.h"

namespace aglow::onnx {

// "[1,2,3]"
std::string listText(const std::vector<int64_t>& list);
// The elements of the axes from `from` up to but without `to`.
int64_t product(const Shape& shape, int64_t from, int64_t to);
// first, first + 1 ... last - 1
std::vector<int64_t> range(int64_t first, int64_t last);

// Extents that a model computes; BadNode when they are not a shape.
Shape shapeOf(std::vector<int64_t> dims);

// 0, 1, 2 ... as a constant, along one axis of a tensor with `rank` axes so that it broadcasts. TooLarge when the model
// asks for more elements than a constant should have.
Value iota(Builder& b, int64_t count, int64_t axis = 0, int64_t rank = 1, ElemKind kind = ElemKind::Int64);
// `count` elements along an axis.
Value sliced(Builder& b, Value x, int64_t axis, int64_t start, int64_t count, int64_t step = 1);
// With an axis of extent 1 at this place of the result.
Value unsqueezed(Builder& b, Value x, int64_t axis);
// A tensor of one element, of any rank, as a scalar; BadNode when it has more.
Value asScalar(Builder& b, Value x, std::string_view what);
// A value for each index of one axis, as a tensor with `rank` axes that broadcasts.
Value alongAxis(Builder& b, Value vector, int64_t axis, int64_t rank);
// Zeros around the spatial or other axes, or, where a number is negative, elements cut away.
Value paddedOrCropped(Builder& b, Value x, std::vector<int64_t> before, std::vector<int64_t> after, Value value);

// The product of matrices, or of a vector (a row at the left, a column at the right) and matrices.
Value matrixProduct(Builder& b, Value x, Value y);

}  // namespace aglow::onnx
