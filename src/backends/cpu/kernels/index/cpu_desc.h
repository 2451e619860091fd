// Descriptors of kernels that read and write at computed places.
#pragma once

#include "backends/cpu/kernels/domain.h"
#include "backends/cpu/kernels/walk.h"

namespace aglow::cpu {

struct IndexDesc {
  int64_t operand;  // which of the addresses
  int64_t bytes;    // 4 or 8
  int64_t count;
  int64_t extent;  // of the axis
};

// An item is a piece of a row of the result: rows are counted by the axes outside, then by the indices.
struct GatherDesc {
  IndexDesc indices;
  int64_t rowBytes, pieceBytes, pieces;
  Items items;
};

// Rows of one element: an item is a block of indices by a block of the rows that the axes outside count. Indices are
// read and checked once for all rows of a block.
inline constexpr int64_t kGatherCols = 512;
struct GatherElementsDesc {
  IndexDesc indices;
  int64_t elemBytes;
  int64_t outer, rowBlock, colBlocks;
};

// Each element of the result at its own coordinates, but for one axis, whose place its index says. An item is a piece
// of kGatherCols neighbours of a row along the last axis; `beside` is how far neighbours lie apart when their indices
// are the same, `skip` how far places of the axis do.
struct GatherAlongDesc {
  IndexDesc indices;
  int64_t elemBytes;
  int64_t cols, pieces, beside, skip;
  Items items;
  Axes<1> rows;
};

// The scratch memory holds, for each row of data, the last update of it (-1: none), and for each update the one before
// it of the same row; or, where rows of one element are combined, what they come to. An item is a piece of a row.
struct ScatterDesc {
  IndexDesc indices;
  int64_t combines;  // 0: the last update replaces the row
  int64_t how;       // Combination
  int64_t flip;
  int64_t elemBytes;
  int64_t rowSize, pieceSize, pieces;
  Items items;
};

}  // namespace aglow::cpu
