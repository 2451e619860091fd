// The means of windows, summed in double.
#include "backends/cpu/kernels/kinds.h"
#include "backends/cpu/kernels/pool/windows.h"

namespace aglow::cpu {

namespace {

template <class D>
[[gnu::always_inline]] inline int32_t avgPoolItems(const PoolDesc* d, void* const* p, int64_t begin, int64_t end,
                                                   Load<D>* load, Store<D>* store) {
  const WindowDesc& window = d->window;
  const WindowAxis& inner = window.axis[window.rank - 1];
  const bool padding = d->countPadding != 0;
  const int64_t last = d->items.first(end);
  for (int64_t item = d->items.first(begin); item < last; ++item) {
    const PoolBlock block(d, item);
    double held[kPoolCols];
    for (int64_t c = 0; c < block.count; ++c) held[c] = 0;
    forEachTap(d, block, [&](int64_t from, int64_t first, int64_t until) {
      for (int64_t c = first; c < until; ++c) held[c] += static_cast<double>(load(p[1], from + c * inner.stride));
    });
    int64_t outside = 1;
    int64_t row = block.row;
    for (int64_t a = window.rank - 2; a >= 0; --a) {
      outside *= countedTaps(window.axis[a], row % window.axis[a].result, padding);
      row /= window.axis[a].result;
    }
    for (int64_t c = 0; c < block.count; ++c) {
      // A window without elements has the mean 0.
      const int64_t count = most(outside * countedTaps(inner, block.col + c, padding), 1);
      store(p[0], block.result + c, static_cast<D>(held[c] / static_cast<double>(count)));
    }
  }
  return kDone;
}

}  // namespace

AGLOW_KERNEL_OF_FLOATS(avg_pool, PoolDesc, avgPoolItems)

}  // namespace aglow::cpu
