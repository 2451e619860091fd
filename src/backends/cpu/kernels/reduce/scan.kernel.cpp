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

// Lines of f32 side by side, a whole block of them, in vectors.
template <int W, int64_t How>
[[gnu::always_inline]] inline void scanLanes(const ScanDesc* d, const float* x, float* y) {
  using V = Lanes<float, W>;
  using Wide = Lanes<double, W>;
  constexpr int kVectors = kReduceCols / W;
  const LinesDesc& lines = d->lines;
  Wide held[kVectors];
  for (Wide& lanes : held) lanes = splat<double, W>(How == kProd ? 1 : 0);
  const int64_t step = d->reverse != 0 ? -lines.stride : lines.stride;
  int64_t at = d->reverse != 0 ? (lines.extent - 1) * lines.stride : 0;
  for (int64_t i = 0; i < lines.extent; ++i, at += step)
    for (int v = 0; v < kVectors; ++v) {
      const Wide value = __builtin_convertvector(loadLanes<V>(x + at + v * W), Wide);
      const Wide next = How == kProd ? held[v] * value : held[v] + value;
      storeLanes(y + at + v * W, __builtin_convertvector(d->exclusive != 0 ? held[v] : next, V));
      held[v] = next;
    }
}

template <int W>
[[gnu::always_inline]] inline int32_t scanLanesOr(const ScanDesc* d, void* const* p, int64_t begin, int64_t end,
                                                  Load<float>* load, Store<float>* store) {
  const int64_t last = d->lines.items.first(end);
  for (int64_t item = d->lines.items.first(begin); item < last; ++item) {
    const LineBlock block(d->lines, item);
    const float* x = static_cast<const float*>(p[1]) + block.first;
    float* y = static_cast<float*>(p[0]) + block.first;
    if (block.count < kReduceCols)
      scanBlock<float>(d, p, block, load, store);
    else if (d->how == kProd)
      scanLanes<W, kProd>(d, x, y);
    else
      scanLanes<W, kSum>(d, x, y);
  }
  return kDone;
}

}  // namespace

AGLOW_KERNEL(scan_lanes_w4, ScanDesc, float, scanLanesOr<4>)
AGLOW_KERNEL(scan_lanes_w8, ScanDesc, float, scanLanesOr<8>)
AGLOW_KERNEL(scan_lanes_w16, ScanDesc, float, scanLanesOr<16>)
AGLOW_KERNEL_OF_KINDS(scan, ScanDesc, scanItems)

}  // namespace aglow::cpu
