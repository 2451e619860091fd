// Lines of elements along an axis, in descriptors of kernels.
#pragma once

#include "backends/cpu/kernels/walk.h"

namespace aglow::cpu {

// Results side by side that one item computes, at least where there are as many, and at most. Wide blocks read memory
// in long pieces; narrow ones give a step more items.
inline constexpr int kReduceCols = 64;
inline constexpr int kWideCols = 512;

// Lines of `extent` elements, `stride` of them side by side, any number of times. An item is a block of `cols`
// neighbours.
struct LinesDesc {
  int64_t extent, stride, cols, blocks;
  Items items;
};

struct LineBlock {
  int64_t line;   // number of the first line
  int64_t count;  // of lines
  int64_t first;  // offset of the first line's first element

  [[gnu::always_inline]] LineBlock(const LinesDesc& lines, int64_t item) {
    const int64_t outer = item / lines.blocks;
    const int64_t beside = item % lines.blocks * lines.cols;
    line = outer * lines.stride + beside;
    count = least(lines.stride - beside, lines.cols);
    first = outer * lines.extent * lines.stride + beside;
  }
};

}  // namespace aglow::cpu
