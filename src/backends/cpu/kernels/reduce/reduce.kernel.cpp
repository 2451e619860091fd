// Reductions of any kind of elements over any axes.
#include "backends/cpu/kernels/kinds.h"
#include "backends/cpu/kernels/reduce/cpu_desc.h"

namespace aglow::cpu {

namespace {

template <class D>
[[gnu::always_inline]] inline int32_t reduceItems(const ReduceDesc* d, void* const* p, int64_t begin, int64_t end,
                                                  Load<D>* load, Store<D>* store) {
  using A = WideOf<D>;
  const int64_t blocks = d->kept.axis[d->kept.rank - 1].extent;
  const int64_t last = d->items.first(end);
  int64_t item = d->items.first(begin);
  Walk<1> walk(d->kept, item);
  for (; item < last; ++item, walk.next()) {
    const int64_t col = item % blocks * kReduceCols;
    const int64_t count = least(d->cols - col, kReduceCols);
    A held[kReduceCols];
    for (int64_t i = 0; i < count; ++i) held[i] = flipped(__builtin_bit_cast(A, d->start), d->flip);
    Walk<1> place(d->reduced, 0);
    for (int64_t n = 0; n < d->places; ++n, place.next())
      for (int64_t r = 0; r < d->run; ++r)
        for (int64_t i = 0; i < count; ++i) {
          const A value = static_cast<A>(load(p[1], walk.offset[0] + place.offset[0] + r + i));
          held[i] = combined(d->how, held[i], flipped(value, d->flip));
        }
    for (int64_t i = 0; i < count; ++i) {
      A value = flipped(held[i], d->flip);
      if (d->divisor >= 0) value = divided(value, d->divisor, d->withoutSign != 0);
      store(p[0], item / blocks * d->cols + col + i, static_cast<D>(value));
    }
  }
  return kDone;
}

}  // namespace

AGLOW_KERNEL_OF_KINDS(reduce, ReduceDesc, reduceItems)

}  // namespace aglow::cpu
