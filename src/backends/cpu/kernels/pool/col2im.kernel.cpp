// Windows put back together: a row of the image is the sum of the rows of windows that reach it, tap after tap. Every
// element of the image is written by one thread, and sums up in the order of the taps.
#include "backends/cpu/kernels/loops.h"
#include "backends/cpu/kernels/pool/cpu_desc.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

namespace {

// The longest row that is summed in vectors, with the rest of the last one.
constexpr int64_t kCol2ImSums = 1024;

// Adds rows of windows to a row of the image where they fall, window by window.
struct WindowByWindow {
  const WindowAxis& inner;
  float* y;

  AGLOW_INLINE void begin(float* row) {
    y = row;
    for (int64_t i = 0; i < inner.input; ++i) y[i] = 0;
  }
  // x is the first of the taps along the innermost axis, each of which has `windows` windows.
  AGLOW_INLINE void add(const float* x, int64_t windows) const {
    AGLOW_ROLLED for (int64_t tap = 0; tap < inner.kernel; ++tap, x += windows) {
      const int64_t shift = tap * inner.dilation - inner.before;  // the first window's place
      const int64_t first = clamped(quotientUp(-shift, inner.stride), 0, inner.result);
      const int64_t end = clamped(quotientUp(inner.input - shift, inner.stride), first, inner.result);
      float* to = y + shift + first * inner.stride;
      AGLOW_ROLLED for (int64_t w = first; w < end; ++w, to += inner.stride)* to += x[w];
    }
  }
  AGLOW_INLINE void end() const {}
};

// With windows one after the other, all taps of W elements of the image are vectors. Lanes that no window reaches add
// zeros, whatever lies there.
template <int W>
struct InVectors {
  using V = Lanes<float, W>;
  const WindowAxis& inner;
  const float *low, *high;  // all windows
  float* y;
  float sums[kCol2ImSums];

  AGLOW_INLINE InVectors(const WindowAxis& axis, const float* first, const float* end)
      : inner(axis), low(first), high(end) {}

  static AGLOW_INLINE bool fits(const WindowAxis& inner) { return inner.stride == 1 && inner.input <= kCol2ImSums - W; }

  AGLOW_INLINE void begin(float* row) {
    y = row;
    for (int64_t i = 0; i < inner.input + W; ++i) sums[i] = 0;
  }
  // The windows of a row from `at` on, some of which may lie outside of it.
  AGLOW_INLINE V some(const float* row, int64_t at) const {
    V value{};
    if (row + at >= low && row + at + W <= high)
      value = loadLanes<V>(row + at);
    else
      for (int64_t i = clamped(-at, 0, W); i < W && at + i < inner.result; ++i) value[i] = row[at + i];
    Lanes<int32_t, W> lane;
    AGLOW_UNROLL for (int i = 0; i < W; ++i) lane[i] = i;
    const auto from = static_cast<int32_t>(clamped(-at, 0, W)),
               to = static_cast<int32_t>(clamped(inner.result - at, 0, W));
    return lane >= from ? (lane < to ? value : V{}) : V{};
  }
  AGLOW_INLINE void add(const float* x, int64_t windows) {
    AGLOW_ROLLED for (int64_t i = 0; i < inner.input; i += W) {
      V sum = loadLanes<V>(sums + i);
      const float* row = x;
      AGLOW_ROLLED for (int64_t tap = 0; tap < inner.kernel; ++tap, row += windows) {
        const int64_t at = i + inner.before - tap * inner.dilation;
        sum += at >= 0 && at + W <= inner.result ? loadLanes<V>(row + at) : some(row, at);
      }
      storeLanes(sums + i, sum);
    }
  }
  AGLOW_INLINE void end() const { __builtin_memcpy(y, sums, static_cast<uint64_t>(inner.input) * sizeof(float)); }
};

template <class Rows>
AGLOW_INLINE void col2ImBy(Rows& rows, const Col2ImDesc* d, void* const* p, int64_t first, int64_t last) {
  const WindowDesc& window = d->window;
  const int64_t outer = window.rank - 1;
  const WindowAxis& inner = window.axis[outer];
  for (int64_t item = first; item < last; ++item) {
    rows.begin(static_cast<float*>(p[0]) + item * inner.input);
    const float* x = static_cast<const float*>(p[1]) + item / d->rows * d->taps * d->windows;
    AGLOW_ROLLED for (int64_t tap = 0; tap < d->taps; tap += inner.kernel) {
      // Which windows' tap falls on this row: none, if one axis has none.
      int64_t row = item % d->rows, place = tap / inner.kernel, size = inner.result, from = 0;
      bool reaches = true;
      for (int64_t a = outer - 1; a >= 0; --a) {
        const WindowAxis& axis = window.axis[a];
        const int64_t start = row % axis.input + axis.before - place % axis.kernel * axis.dilation;
        reaches = reaches && start >= 0 && start % axis.stride == 0 && start / axis.stride < axis.result;
        from += start / axis.stride * size;
        size *= axis.result;
        row /= axis.input;
        place /= axis.kernel;
      }
      if (reaches) rows.add(x + tap * d->windows + from, d->windows);
    }
    rows.end();
  }
}

template <int W>
AGLOW_INLINE int32_t col2Im(const Col2ImDesc* d, void* const* p, int64_t begin, int64_t end) {
  const WindowAxis& inner = d->window.axis[d->window.rank - 1];
  const int64_t first = d->items.first(begin), last = d->items.first(end);
  if (InVectors<W>::fits(inner)) {
    const float* x = static_cast<const float*>(p[1]);
    InVectors<W> rows(inner, x, x + d->items.count / d->rows * d->taps * d->windows);
    col2ImBy(rows, d, p, first, last);
  } else {
    WindowByWindow rows{inner, nullptr};
    col2ImBy(rows, d, p, first, last);
  }
  return kDone;
}

}  // namespace

#define AGLOW_COL2IM(W)                                                                                   \
  extern "C" int32_t aglow_col2im_w##W(const Col2ImDesc* d, void* const* p, int64_t begin, int64_t end) { \
    return col2Im<W>(d, p, begin, end);                                                                   \
  }
AGLOW_COL2IM(4)
AGLOW_COL2IM(8)
AGLOW_COL2IM(16)

}  // namespace aglow::cpu
