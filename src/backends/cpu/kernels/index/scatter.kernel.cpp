// Rows replaced by, or combined with, others. First all indices are checked and the updates of each row are chained;
// then every row is done once, by the thread that has its turn, and rounded once however many updates meet there.
#include "backends/cpu/kernels/index/index.h"
#include "backends/cpu/kernels/kinds.h"

namespace aglow::cpu {

namespace {

struct Chains {
  int64_t* last;
  int64_t* earlier;
};
[[gnu::always_inline]] inline Chains chainsIn(const ScatterDesc* d, void* const* p) {
  int64_t* scratch = static_cast<int64_t*>(p[4]);
  return {scratch, scratch + d->indices.extent};
}

template <class D>
[[gnu::always_inline]] inline void combinePiece(const ScatterDesc* d, void* const* p, int64_t row, int64_t first,
                                                int64_t end, Load<D>* load, Store<D>* store) {
  using A = WideOf<D>;
  constexpr int64_t kCols = 64;
  const Chains chains = chainsIn(d, p);
  for (; first < end; first += kCols) {
    const int64_t count = least(end - first, kCols);
    A held[kCols];
    for (int64_t c = 0; c < count; ++c)
      held[c] = flipped(static_cast<A>(load(p[1], row * d->rowSize + first + c)), d->flip);
    for (int64_t i = chains.last[row]; i >= 0; i = chains.earlier[i])
      for (int64_t c = 0; c < count; ++c)
        held[c] = combined(d->how, held[c], flipped(static_cast<A>(load(p[3], i * d->rowSize + first + c)), d->flip));
    for (int64_t c = 0; c < count; ++c)
      store(p[0], row * d->rowSize + first + c, static_cast<D>(flipped(held[c], d->flip)));
  }
}

// Rows of one element: all of them, wide, in the scratch memory. Updates are taken in the order of the chains.
template <class D>
[[gnu::always_inline]] inline int32_t scatterTotals(const ScatterDesc* d, void* const* p, int64_t, int64_t,
                                                    Load<D>* load, Store<D>*) {
  using A = WideOf<D>;
  A* totals = static_cast<A*>(p[4]);
  for (int64_t row = 0; row < d->indices.extent; ++row) totals[row] = flipped(static_cast<A>(load(p[1], row)), d->flip);
  const auto take = [&](auto combine) __attribute__((always_inline)) -> int32_t {
    for (int64_t i = d->indices.count - 1; i >= 0; --i) {
      const int64_t row = placeOf(d->indices, p[d->indices.operand], i);
      if (row < 0) return kBadIndex;
      totals[row] = combine(totals[row], flipped(static_cast<A>(load(p[3], i)), d->flip));
    }
    return kDone;
  };
  if (d->how == kSum) return take([](A a, A b) __attribute__((always_inline)) { return added(a, b); });
  return take([&](A a, A b) __attribute__((always_inline)) { return combined(d->how, a, b); });
}

// And as the result has them.
template <class D>
[[gnu::always_inline]] inline int32_t scatterNarrow(const ScatterDesc* d, void* const* p, int64_t begin, int64_t end,
                                                    Load<D>*, Store<D>* store) {
  const auto* totals = static_cast<const WideOf<D>*>(p[4]);
  for (int64_t row = d->items.first(begin); row < d->items.first(end); ++row)
    store(p[0], row, static_cast<D>(flipped(totals[row], d->flip)));
  return kDone;
}

template <class D>
[[gnu::always_inline]] inline int32_t scatterItems(const ScatterDesc* d, void* const* p, int64_t begin, int64_t end,
                                                   Load<D>* load, Store<D>* store) {
  const Chains chains = chainsIn(d, p);
  auto* result = static_cast<uint8_t*>(p[0]);
  const bool inPlace = p[0] == p[1];
  const int64_t last = d->items.first(end);
  for (int64_t item = d->items.first(begin); item < last; ++item) {
    const int64_t row = item / d->pieces;
    const int64_t first = item % d->pieces * d->pieceSize;
    const int64_t until = d->pieces == 1 ? d->rowSize : least(first + d->pieceSize, d->rowSize);
    const int64_t update = chains.last[row];
    if (d->combines != 0 && update >= 0) {
      combinePiece(d, p, row, first, until, load, store);
      continue;
    }
    if (update < 0 && inPlace) continue;
    const auto* source = static_cast<const uint8_t*>(update < 0 ? p[1] : p[3]);
    const int64_t from = update < 0 ? row : update;
    __builtin_memcpy(result + (row * d->rowSize + first) * d->elemBytes,
                     source + (from * d->rowSize + first) * d->elemBytes,
                     static_cast<uint64_t>((until - first) * d->elemBytes));
  }
  return kDone;
}

}  // namespace

extern "C" int32_t aglow_scatter_chains(const ScatterDesc* d, void* const* p, int64_t, int64_t) {
  const Chains chains = chainsIn(d, p);
  for (int64_t row = 0; row < d->indices.extent; ++row) chains.last[row] = -1;
  for (int64_t i = 0; i < d->indices.count; ++i) {
    const int64_t row = placeOf(d->indices, p[d->indices.operand], i);
    if (row < 0) return kBadIndex;
    chains.earlier[i] = chains.last[row];
    chains.last[row] = i;
  }
  return kDone;
}

AGLOW_KERNEL_OF_KINDS(scatter, ScatterDesc, scatterItems)
AGLOW_KERNEL_OF_KINDS(scatter_totals, ScatterDesc, scatterTotals)
AGLOW_KERNEL_OF_KINDS(scatter_narrow, ScatterDesc, scatterNarrow)

}  // namespace aglow::cpu
