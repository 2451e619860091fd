// Convolution as a matrix product: the filter by the elements under the windows, which are packed as they are needed.
#include "backends/cpu/kernels/conv/general_desc.h"
#include "backends/cpu/kernels/gemm/product_block.h"
#include "backends/cpu/kernels/kinds.h"

namespace aglow::cpu {

namespace {

// Neighbouring positions of one row of the result, and the index of the row along the outer axes.
struct Segment {
  int64_t col, count;  // in the block
  int64_t at;          // index along the innermost axis
  int64_t row;         // number of the row
};

// Where the windows of a row of results start along the outer axes, moved by a tap; below zero when that is outside.
[[gnu::always_inline]] inline int64_t rowOffset(const WindowDesc& window, int64_t row, int64_t tapRow) {
  int64_t offset = 0;
  int64_t size = window.axis[window.rank - 1].input;
  bool inside = true;
  for (int64_t a = window.rank - 2; a >= 0; --a) {
    const WindowAxis& axis = window.axis[a];
    const int64_t at = row % axis.result * axis.stride + tapRow % axis.kernel * axis.dilation - axis.before;
    inside = inside && at >= 0 && at < axis.input;
    row /= axis.result;
    tapRow /= axis.kernel;
    offset += at * size;
    size *= axis.input;
  }
  return inside ? offset : -1;
}

// One row of the panel: what tap `tap` sees at the positions, zero outside of the input.
template <class D, class C>
[[gnu::always_inline]] inline void packTap(const ConvDesc* d, const void* x, int64_t first, int64_t tap,
                                           const Segment* segments, int64_t count, Load<D>* load, C* to) {
  const WindowAxis& inner = d->window.axis[d->window.rank - 1];
  const int64_t tapRow = tap / inner.kernel;
  const int64_t shift = tap % inner.kernel * inner.dilation - inner.before;
  const int64_t low = quotientUp(-shift, inner.stride);
  const int64_t high = quotientUp(inner.input - shift, inner.stride);
  for (int64_t s = 0; s < count; ++s) {
    const Segment segment = segments[s];
    C* row = to + segment.col;
    const int64_t offset = rowOffset(d->window, segment.row, tapRow);
    const int64_t end = segment.count;
    const int64_t from = offset < 0 ? end : clamped(low - segment.at, 0, end);
    const int64_t until = clamped(high - segment.at, from, end);
    const int64_t base = first + offset + segment.at * inner.stride + shift;
    for (int64_t i = 0; i < from; ++i) row[i] = 0;
    for (int64_t i = from; i < until; ++i) row[i] = static_cast<C>(load(x, base + i * inner.stride));
    for (int64_t i = until; i < end; ++i) row[i] = 0;
  }
}

template <class D, class C, int L>
[[gnu::always_inline]] inline int32_t convItems(const ConvDesc* d, void* const* p, int64_t begin, int64_t end,
                                                Load<D>* load, Store<D>* store) {
  const int64_t width = d->window.axis[d->window.rank - 1].result;
  const int64_t depth = d->depth * d->taps;
  const int64_t last = d->items.first(end);
  ProductBlock<C> block;
  for (int64_t item = d->items.first(begin); item < last; ++item) {
    const int64_t position = item % d->positionBlocks * kProductCols;
    const int64_t channelBlock = item / d->positionBlocks;
    const int64_t channel = channelBlock % d->channelBlocks * kProductRows;
    const int64_t group = channelBlock / d->channelBlocks % d->groups;
    const int64_t image = channelBlock / d->channelBlocks / d->groups;
    const int64_t rows = least(d->channels - channel, kProductRows);
    const int64_t cols = least(d->resultSize - position, kProductCols);
    const int64_t firstFilter = group * d->channels + channel;
    const int64_t firstInput = (image * d->groups + group) * d->depth * d->inputSize;

    Segment segments[kProductCols];
    int64_t count = 0;
    for (int64_t col = 0; col < cols;) {
      const int64_t at = (position + col) % width;
      const int64_t length = least(width - at, cols - col);
      segments[count++] = {col, length, at, (position + col) / width};
      col += length;
    }
    startBlock<C, L>(block, rows, cols, [&](int64_t row) {
      return d->hasBias != 0 ? static_cast<C>(load(p[3], firstFilter + row)) : C{0};
    });
    multiplyBlock<C, L>(
        block, rows, cols, depth,
        [&](int64_t row, int64_t k) { return static_cast<C>(load(p[2], (firstFilter + row) * depth + k)); },
        [&](int64_t first, int64_t taps, C(&panel)[kProductDepth][kProductCols]) {
          for (int64_t k = 0; k < taps; ++k) {
            const int64_t plane = firstInput + (first + k) / d->taps * d->inputSize;
            packTap<D, C>(d, p[1], plane, (first + k) % d->taps, segments, count, load, panel[k]);
          }
        });
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t to = (image * d->groups * d->channels + firstFilter + r) * d->resultSize + position;
      for (int64_t c = 0; c < cols; ++c) store(p[0], to + c, static_cast<D>(block.held[r][c]));
    }
  }
  return kDone;
}

}  // namespace

AGLOW_KERNEL_OF_VECTORS(conv, ConvDesc, convItems)

}  // namespace aglow::cpu
