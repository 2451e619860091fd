// The largest elements of windows. NaN wins, and the first of equals.
#include "backends/cpu/kernels/pool/windows.h"

namespace aglow::cpu {

namespace {

template <class D>
[[gnu::always_inline]] inline D lowestValue(const PoolDesc* d) {
  return flipped(static_cast<D>(__builtin_bit_cast(WideOf<D>, d->start)), d->flip);
}

template <class D>
[[gnu::always_inline]] inline int32_t maxPoolItems(const PoolDesc* d, void* const* p, int64_t begin, int64_t end,
                                                   Load<D>* load, Store<D>* store) {
  const int64_t stride = d->window.axis[d->window.rank - 1].stride;
  const int64_t last = d->items.first(end);
  for (int64_t item = d->items.first(begin); item < last; ++item) {
    const PoolBlock block(d, item);
    D held[kPoolCols];
    for (int64_t c = 0; c < block.count; ++c) held[c] = lowestValue<D>(d);
    forEachTap(d, block, [&](int64_t from, int64_t first, int64_t until) {
      for (int64_t c = first; c < until; ++c) {
        const D value = flipped(load(p[1], from + c * stride), d->flip);
        held[c] = held[c] < value || value != value ? value : held[c];
      }
    });
    for (int64_t c = 0; c < block.count; ++c) store(p[0], block.result + c, flipped(held[c], d->flip));
  }
  return kDone;
}

template <class D>
[[gnu::always_inline]] inline int32_t maxPoolIndexItems(const PoolDesc* d, void* const* p, int64_t begin, int64_t end,
                                                        Load<D>* load, Store<D>* store) {
  const int64_t stride = d->window.axis[d->window.rank - 1].stride;
  int64_t* indices = static_cast<int64_t*>(p[1]);
  const int64_t last = d->items.first(end);
  for (int64_t item = d->items.first(begin); item < last; ++item) {
    const PoolBlock block(d, item);
    D held[kPoolCols];
    int64_t winner[kPoolCols];
    for (int64_t c = 0; c < block.count; ++c) {
      held[c] = lowestValue<D>(d);
      winner[c] = -1;
    }
    forEachTap(d, block, [&](int64_t from, int64_t first, int64_t until) {
      for (int64_t c = first; c < until; ++c) {
        const D value = flipped(load(p[2], from + c * stride), d->flip);
        const bool wins = winner[c] < 0 || held[c] < value || (value != value && held[c] == held[c]);
        held[c] = wins ? value : held[c];
        winner[c] = wins ? from + c * stride : winner[c];
      }
    });
    for (int64_t c = 0; c < block.count; ++c) {
      store(p[0], block.result + c, flipped(held[c], d->flip));
      indices[block.result + c] = winner[c];
    }
  }
  return kDone;
}

}  // namespace

#define AGLOW_MAX_POOL(NAME, D)                                                                                 \
  extern "C" int32_t aglow_max_pool_##NAME(const PoolDesc* d, void* const* p, int64_t begin, int64_t end,       \
                                           Load<D>* load, Store<D>* store) {                                    \
    return maxPoolItems<D>(d, p, begin, end, load, store);                                                      \
  }                                                                                                             \
  extern "C" int32_t aglow_max_pool_index_##NAME(const PoolDesc* d, void* const* p, int64_t begin, int64_t end, \
                                                 Load<D>* load, Store<D>* store) {                              \
    return maxPoolIndexItems<D>(d, p, begin, end, load, store);                                                 \
  }
AGLOW_MAX_POOL(f32, float)
AGLOW_MAX_POOL(f64, double)
AGLOW_MAX_POOL(i64, int64_t)

}  // namespace aglow::cpu
