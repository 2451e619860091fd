// Descriptor of the matrix product that serves every kind of elements.
#pragma once

#include "backends/cpu/kernels/walk.h"

namespace aglow::cpu {

// The block of a product that an item computes, and how much of the sums it does at a time.
inline constexpr int64_t kProductRows = 64;
inline constexpr int64_t kProductCols = 64;
inline constexpr int64_t kProductDepth = 64;

// result[row, col] = sum over k of left[row, k] * right[k, col], each with strides of its own, for a batch. An item is
// a block of rows by a block of columns: the last two axes of `blocks` count them, the others are the batch.
struct MatMulDesc {
  int64_t left, right;  // which of the addresses
  int64_t rows, cols, depth;
  int64_t leftRow, leftDepth;
  int64_t rightDepth, rightCol;
  int64_t resultRow, resultCol;
  Items items;
  Axes<3> blocks;  // steps in the left side, the right side and the result
};

}  // namespace aglow::cpu
