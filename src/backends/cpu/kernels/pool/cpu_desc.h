// Descriptor of pools.
#pragma once

#include "backends/cpu/kernels/domain.h"
#include "backends/cpu/kernels/window.h"

namespace aglow::cpu {

// Results side by side that one item computes.
inline constexpr int64_t kPoolCols = 64;

// How many rows of the input, and how many neighbours of a row, the windows of a block may meet where they are folded
// rows first.
inline constexpr int64_t kPoolRows = 256;
inline constexpr int64_t kPoolSpan = 1024;

// An item is a block of a row of results: planes (images by channels), rows, blocks.
struct PoolDesc {
  int64_t inputSize;     // positions of a plane
  int64_t rows, blocks;  // of a plane's results
  int64_t start;         // max: bits of the kind's lowest value, a double or an int64
  int64_t flip;          // max: kSignBit for 64 bits without sign
  int64_t countPadding;  // mean: padding counts as elements
  Items items;
  WindowDesc window;
};

// Windows put back together: an item is a row of a plane's image, the window's input.
struct Col2ImDesc {
  int64_t rows;           // of a plane
  int64_t taps, windows;  // of a plane
  Items items;
  WindowDesc window;
};

}  // namespace aglow::cpu
