// Where the taps of the windows of neighbouring results meet the input, padding left out.
#pragma once

#include "backends/cpu/kernels/pool/cpu_desc.h"

namespace aglow::cpu {

// Taps of the window of result `at` that lie between two positions of the input.
struct TapRange {
  int64_t first, end;

  [[gnu::always_inline]] TapRange(const WindowAxis& axis, int64_t at, int64_t low, int64_t high) {
    const int64_t shift = axis.before - at * axis.stride;
    first = clamped(quotientUp(low + shift, axis.dilation), 0, axis.kernel);
    end = clamped(quotientUp(high + shift, axis.dilation), first, axis.kernel);
  }
  [[gnu::always_inline]] int64_t count() const { return end - first; }
};

// How many taps of a window count for a mean along an axis.
[[gnu::always_inline]] inline int64_t countedTaps(const WindowAxis& axis, int64_t at, bool padding) {
  return TapRange(axis, at, padding ? -axis.before : 0, padding ? axis.input + axis.after : axis.input).count();
}

// The results of one item.
struct PoolBlock {
  int64_t plane, row;
  int64_t col, count;  // along the innermost axis
  int64_t result;      // offset of the first

  [[gnu::always_inline]] PoolBlock(const PoolDesc* d, int64_t item) {
    const int64_t width = d->window.axis[d->window.rank - 1].result;
    const int64_t rows = item / d->blocks;
    col = item % d->blocks * kPoolCols;
    count = d->blocks == 1 ? width : least(width - col, kPoolCols);
    plane = rows / d->rows;
    row = rows % d->rows;
    result = rows * width + col;
  }
};

// The rows of the input that the windows of a block's row of results meet, in row-major order: where the first begins,
// and how the others follow. None where all of them lie in the padding.
struct TapRows {
  int64_t base;
  Axes<1> taps;

  [[gnu::always_inline]] TapRows(const PoolDesc* d, const PoolBlock& block) {
    const WindowDesc& window = d->window;
    taps.rank = window.rank - 1;
    base = block.plane * d->inputSize;
    int64_t size = window.axis[window.rank - 1].input;
    int64_t row = block.row;
    for (int64_t a = window.rank - 2; a >= 0; --a) {
      const WindowAxis& axis = window.axis[a];
      const int64_t at = row % axis.result;
      row /= axis.result;
      const TapRange range(axis, at, 0, axis.input);
      // A step that is never taken may be longer than any memory.
      taps.axis[a] = {range.count(), {range.count() > 1 ? axis.dilation * size : 0}};
      base += (at * axis.stride - axis.before + range.first * axis.dilation) * size;
      size *= axis.input;
    }
  }
};

// Calls f(from, first, end) for each tap of the block's windows, in row-major order: result c, from `first` to `end`,
// sees the input at from + c * stride.
template <class F>
[[gnu::always_inline]] inline void forEachTap(const PoolDesc* d, const PoolBlock& block, F f) {
  const WindowDesc& window = d->window;
  const WindowAxis& inner = window.axis[window.rank - 1];
  const TapRows rows(d, block);
  const int64_t places = rows.taps.count();
  if (places == 0) return;
  const int64_t firstTap = TapRange(inner, block.col + block.count - 1, 0, inner.input).first;
  const int64_t endTap = TapRange(inner, block.col, 0, inner.input).end;
  Walk<1> walk(rows.taps, 0);
  for (int64_t n = 0; n < places; ++n, walk.next())
    for (int64_t tap = firstTap; tap < endTap; ++tap) {
      const int64_t shift = tap * inner.dilation - inner.before;
      const int64_t first = clamped(quotientUp(-shift, inner.stride) - block.col, 0, block.count);
      const int64_t end = clamped(quotientUp(inner.input - shift, inner.stride) - block.col, first, block.count);
      f(rows.base + walk.offset[0] + block.col * inner.stride + shift, first, end);
    }
}

}  // namespace aglow::cpu
