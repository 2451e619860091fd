// Running sums and products along an axis.
#include "backends/cpu/kernels/kinds.h"
#include "backends/cpu/kernels/reduce/cpu_desc.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

namespace {

template <class D>
[[gnu::always_inline]] inline void scanBlock(const ScanDesc* d, void* const* p, const LineBlock& block, Load<D>* load,
                                             Store<D>* store) {
  using A = WideOf<D>;
  const LinesDesc& lines = d->lines;
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

template <class D>
[[gnu::always_inline]] inline int32_t scanItems(const ScanDesc* d, void* const* p, int64_t begin, int64_t end,
                                                Load<D>* load, Store<D>* store) {
  const int64_t last = d->lines.items.first(end);
  for (int64_t item = d->lines.items.first(begin); item < last; ++item)
    scanBlock<D>(d, p, LineBlock(d->lines, item), load, store);
  return kDone;
}

// `Rows` steps of N lines of f32 side by side, from element `at` of the first line.
template <int N, int Rows, int64_t How>
[[gnu::always_inline]] inline void scanRows(const ScanDesc* d, const float* x, float* y, int64_t at, int64_t step,
                                            double* held) {
  using V = Lanes<float, N>;
  using Wide = Lanes<double, N>;
  Wide total = loadLanes<Wide>(held);
  for (int row = 0; row < Rows; ++row, at += step) {
    const Wide value = __builtin_convertvector(loadLanes<V>(x + at), Wide);
    const Wide next = How == kProd ? total * value : total + value;
    storeLanes(y + at, __builtin_convertvector(d->exclusive != 0 ? total : next, V));
    total = next;
  }
  storeLanes(held, total);
}

// Lines of f32 side by side: a few steps of all of them at a time, so that memory is read in long pieces. W sums in f64
// fill a vector.
template <int W, int64_t How>
[[gnu::always_inline]] inline void scanLanes(const ScanDesc* d, const float* x, float* y, int64_t count) {
  constexpr int kRows = 4;
  const LinesDesc& lines = d->lines;
  double held[kWideCols];
  for (int64_t c = 0; c < count; ++c) held[c] = How == kProd ? 1 : 0;
  const int64_t step = d->reverse != 0 ? -lines.stride : lines.stride;
  int64_t at = d->reverse != 0 ? (lines.extent - 1) * lines.stride : 0;
  int64_t i = 0;
  for (; i + kRows <= lines.extent; i += kRows, at += kRows * step) {
    int64_t c = 0;
    for (; c + W <= count; c += W) scanRows<W, kRows, How>(d, x + c, y + c, at, step, held + c);
    for (; c < count; ++c) scanRows<1, kRows, How>(d, x + c, y + c, at, step, held + c);
  }
  for (; i < lines.extent; ++i, at += step) {
    int64_t c = 0;
    for (; c + W <= count; c += W) scanRows<W, 1, How>(d, x + c, y + c, at, step, held + c);
    for (; c < count; ++c) scanRows<1, 1, How>(d, x + c, y + c, at, step, held + c);
  }
}

template <int W>
[[gnu::always_inline]] inline int32_t scanOfLanes(const ScanDesc* d, void* const* p, int64_t begin, int64_t end) {
  const int64_t last = d->lines.items.first(end);
  for (int64_t item = d->lines.items.first(begin); item < last; ++item) {
    const LineBlock block(d->lines, item);
    const float* x = static_cast<const float*>(p[1]) + block.first;
    float* y = static_cast<float*>(p[0]) + block.first;
    if (d->how == kProd)
      scanLanes<W, kProd>(d, x, y, block.count);
    else
      scanLanes<W, kSum>(d, x, y, block.count);
  }
  return kDone;
}

}  // namespace

extern "C" int32_t aglow_scan_lanes_w4(const ScanDesc* d, void* const* p, int64_t begin, int64_t end) {
  return scanOfLanes<4>(d, p, begin, end);
}
extern "C" int32_t aglow_scan_lanes_w8(const ScanDesc* d, void* const* p, int64_t begin, int64_t end) {
  return scanOfLanes<4>(d, p, begin, end);
}
extern "C" int32_t aglow_scan_lanes_w16(const ScanDesc* d, void* const* p, int64_t begin, int64_t end) {
  return scanOfLanes<8>(d, p, begin, end);
}
AGLOW_KERNEL_OF_KINDS(scan, ScanDesc, scanItems)

}  // namespace aglow::cpu
