// The best elements along an axis, best first. The result's indices are a heap of what was best so far, the worst on
// top, until they are sorted; so no other memory is needed.
#include "backends/cpu/kernels/kinds.h"
#include "backends/cpu/kernels/sort/cpu_desc.h"

namespace aglow::cpu {

namespace {

// One line: the elements, and where the indices of the best go.
template <class D>
struct TopLine {
  const TopKDesc* d;
  Load<D>* load;
  const void* x;
  int64_t first;
  int64_t* heap;

  [[gnu::always_inline]] D value(int64_t index) const { return flipped(load(x, first + index * d->stride), d->flip); }
  [[gnu::always_inline]] int64_t& at(int64_t i) const { return heap[i * d->stride]; }

  // NaN counts as the largest.
  [[gnu::always_inline]] static bool above(D a, D b) { return (b < a) | ((a != a) & (b == b)); }
  [[gnu::always_inline]] bool better(D a, D b) const { return d->largest != 0 ? above(a, b) : above(b, a); }
  // The lower index is first between equals.
  [[gnu::always_inline]] bool before(D a, int64_t aIndex, D b, int64_t bIndex) const {
    return better(a, b) || (!better(b, a) && aIndex < bIndex);
  }

  // Puts an index at a place of the heap or, until nothing under it is worse, below.
  [[gnu::always_inline]] void sink(int64_t place, int64_t size, int64_t index) const {
    const D moved = value(index);
    for (int64_t child = 2 * place + 1; child < size; child = 2 * place + 1) {
      int64_t under = at(child);
      D held = value(under);
      if (child + 1 < size) {
        const int64_t other = at(child + 1);
        const D otherValue = value(other);
        if (before(held, under, otherValue, other)) {
          ++child;
          under = other;
          held = otherValue;
        }
      }
      if (!before(moved, index, held, under)) break;
      at(place) = under;
      place = child;
    }
    at(place) = index;
  }

  [[gnu::always_inline]] void select() const {
    const int64_t k = d->k;
    for (int64_t i = 0; i < k; ++i) at(i) = i;
    for (int64_t i = k / 2; i-- > 0;) sink(i, k, at(i));
    D worst = value(at(0));
    // Most chunks have nothing better than what is held.
    constexpr int64_t kChunk = 64;
    for (int64_t begin = k; begin < d->extent; begin += kChunk) {
      const int64_t end = least(begin + kChunk, d->extent);
      int32_t found = 0;
      for (int64_t i = begin; i < end; ++i) found |= better(value(i), worst) ? 1 : 0;
      if (found == 0) continue;
      for (int64_t i = begin; i < end; ++i) {
        if (!better(value(i), worst)) continue;
        sink(0, k, i);
        worst = value(at(0));
      }
    }
    for (int64_t size = k - 1; size > 0; --size) {
      const int64_t moved = at(size);
      at(size) = at(0);
      sink(0, size, moved);
    }
  }
};

template <class D>
[[gnu::always_inline]] inline int32_t topKItems(const TopKDesc* d, void* const* p, int64_t begin, int64_t end,
                                                Load<D>* load, Store<D>* store) {
  const int64_t last = d->items.first(end);
  for (int64_t item = d->items.first(begin); item < last; ++item) {
    const int64_t outer = item / d->stride;
    const int64_t beside = item % d->stride;
    const int64_t to = outer * d->k * d->stride + beside;
    const TopLine<D> line{d, load, p[2], outer * d->extent * d->stride + beside, static_cast<int64_t*>(p[1]) + to};
    line.select();
    for (int64_t i = 0; i < d->k; ++i) store(p[0], to + i * d->stride, flipped(line.value(line.at(i)), d->flip));
  }
  return kDone;
}

}  // namespace

AGLOW_KERNEL_OF_KINDS(top_k, TopKDesc, topKItems)

}  // namespace aglow::cpu
