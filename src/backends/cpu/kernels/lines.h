// Lines of elements along an axis, in descriptors of kernels.
#pragma once

#include "backends/cpu/kernels/walk.h"

namespace aglow::cpu {

// Results side by side that one item computes.
inline constexpr int kReduceCols = 64;

// Lines of `extent` elements, `stride` of them side by side, any number of times. An item is a block of kReduceCols
// neighbours.
struct LinesDesc {
  int64_t extent, stride, blocks;
  Items items;
};

struct LineBlock {
  int64_t line;   // number of the first line
  int64_t count;  // of lines
  int64_t first;  // offset of the first line's first element

  [[gnu::always_inline]] LineBlock(const LinesDesc& lines, int64_t item) {
    const int64_t outer = item / lines.blocks;
    const int64_t beside = item % lines.blocks * kReduceCols;
    line = outer * lines.stride + beside;
    count = least(lines.stride - beside, kReduceCols);
    first = outer * lines.extent * lines.stride + beside;
  }
};

}  // namespace aglow::cpu
