// A value around a tensor, row by row: every element of the result is written once.
#include "backends/cpu/kernels/move/cpu_desc.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

namespace {

template <class T>
[[gnu::always_inline]] inline void fillRun(T* to, int64_t count, T value) {
  constexpr int kN = 32 / sizeof(T);
  int64_t i = 0;
  for (; i + kN <= count; i += kN) storeLanes(to + i, splat<T, kN>(value));
  for (; i < count; ++i) to[i] = value;
}

template <class T>
[[gnu::always_inline]] inline void padRows(const PadDesc* d, void* const* p, int64_t first, int64_t last) {
  const T* x = static_cast<const T*>(p[1]);
  const T value = *static_cast<const T*>(p[2]);
  T* y = static_cast<T*>(p[0]);
  const int64_t outer = d->outer.rank - 1;
  const int64_t blocks = d->outer.axis[outer].extent;
  Walk<1> walk(d->outer, first);
  for (int64_t item = first; item < last; ++item, walk.next()) {
    bool inside = true;
    for (int64_t a = 0; a < outer; ++a) {
      const int64_t position = walk.index[a] - d->before[a];
      inside = inside && position >= 0 && position < d->extent[a];
    }
    const int64_t begin = walk.index[outer] * d->colBlock;
    const int64_t end = blocks == 1 ? d->cols : least(begin + d->colBlock, d->cols);
    T* row = y + item / blocks * d->cols;
    if (!inside) {
      fillRun(row + begin, end - begin, value);
      continue;
    }
    const int64_t from = clamped(d->colBefore, begin, end);
    const int64_t to = clamped(d->colBefore + d->colExtent, from, end);
    fillRun(row + begin, from - begin, value);
    if (from < to)
      __builtin_memcpy(row + from, x + (d->from + walk.offset[0] + from), static_cast<uint64_t>(to - from) * sizeof(T));
    fillRun(row + to, end - to, value);
  }
}

}  // namespace

extern "C" int32_t aglow_pad(const PadDesc* d, void* const* p, int64_t begin, int64_t end) {
  const int64_t first = d->items.first(begin);
  const int64_t last = d->items.first(end);
  if (d->elemBytes == 1) padRows<uint8_t>(d, p, first, last);
  if (d->elemBytes == 2) padRows<uint16_t>(d, p, first, last);
  if (d->elemBytes == 4) padRows<uint32_t>(d, p, first, last);
  if (d->elemBytes == 8) padRows<uint64_t>(d, p, first, last);
  return kDone;
}

}  // namespace aglow::cpu
