// Running sums and products along an axis.
#include "backends/cpu/kernels/kinds.h"
#include "backends/cpu/kernels/reduce/cpu_desc.h"

namespace aglow::cpu {

namespace {

template <class D>
[[gnu::always_inline]] inline int32_t scanItems(const ScanDesc* d, void* const* p, int64_t begin, int64_t end,
                                                Load<D>* load, Store<D>* store) {
  using A = WideOf<D>;
  const LinesDesc& lines = d->lines;
  const int64_t last = lines.items.first(end);
  for (int64_t item = lines.items.first(begin); item < last; ++item) {
    const LineBlock block(lines, item);
    A held[kReduceCols];
    for (int64_t c = 0; c < block.count; ++c) held[c] = d->how == kProd ? A{1} : A{0};
    for (int64_t i = 0; i < lines.extent; ++i) {
      const int64_t at = block.first + (d->reverse != 0 ? lines.extent - 1 - i : i) * lines.stride;
      for (int64_t c = 0; c < block.count; ++c) {
        const A next = combined(d->how, held[c], static_cast<A>(load(p[1], at + c)));
        store(p[0], at + c, static_cast<D>(d->exclusive != 0 ? held[c] : next));
        held[c] = next;
      }
    }
  }
  return kDone;
}

}  // namespace

AGLOW_KERNEL_OF_KINDS(scan, ScanDesc, scanItems)

}  // namespace aglow::cpu
