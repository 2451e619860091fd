// Descriptors of the kernels that move elements by their size, whatever their kind.
#pragma once

#include "backends/cpu/kernels/walk.h"

namespace aglow::cpu {

// Elements from one strided memory, at the second address, to another, at the first. Inside are rows and columns:
// columns are neighbours in the target, and rows neighbours in the source where the columns are not. An item is a block
// of them; the last two axes of `blocks` count the blocks of rows and of columns.
struct CopyDesc {
  int64_t elemBytes;
  int64_t wide;  // tiles may use vectors of 64 bytes
  int64_t rows, rowFrom, rowTo;
  int64_t cols, colFrom, colTo;
  int64_t rowBlock, colBlock;
  Items items;
  Axes<2> blocks;
};

// Elements around x. The last axis of `outer` counts the blocks of a result's row; the others are the axes outside of
// it, with the step in x.
struct PadDesc {
  int64_t elemBytes;
  int64_t from;                                  // offset in x of the result's first element, below zero
  int64_t cols, colBefore, colExtent, colBlock;  // a row of the result, and where x lies in it
  int64_t before[kMaxAxes];                      // of the axes outside
  int64_t extent[kMaxAxes];                      // of x
  Items items;
  Axes<1> outer;
};

}  // namespace aglow::cpu
