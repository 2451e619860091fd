// Where the largest or smallest elements along an axis are. NaN wins over every number.
#include "backends/cpu/kernels/sort/cpu_desc.h"

namespace aglow::cpu {

namespace {

template <class D>
[[gnu::always_inline]] inline bool replaces(const ArgReduceDesc* d, D value, D held) {
  const bool beats = d->largest != 0 ? held < value : value < held;
  const bool nan = (value != value) & ((held == held) | (d->last != 0));
  return beats | nan | ((d->last != 0) & (value == held));
}

// One line whose elements are neighbours. Most chunks have nothing better, which takes no chain of comparisons to see.
template <class D>
[[gnu::always_inline]] inline int64_t bestOfLine(const ArgReduceDesc* d, const void* x, int64_t first, Load<D>* load) {
  constexpr int64_t kChunk = 64;
  D held = flipped(load(x, first), d->flip);
  int64_t index = 0;
  for (int64_t begin = 1; begin < d->lines.extent; begin += kChunk) {
    const int64_t end = least(begin + kChunk, d->lines.extent);
    int32_t better = 0;
    for (int64_t i = begin; i < end; ++i) better |= replaces(d, flipped(load(x, first + i), d->flip), held) ? 1 : 0;
    if (better == 0) continue;
    for (int64_t i = begin; i < end; ++i) {
      const D value = flipped(load(x, first + i), d->flip);
      if (!replaces(d, value, held)) continue;
      held = value;
      index = i;
    }
  }
  return index;
}

template <class D>
[[gnu::always_inline]] inline int32_t argReduceItems(const ArgReduceDesc* d, void* const* p, int64_t begin, int64_t end,
                                                     Load<D>* load) {
  const LinesDesc& lines = d->lines;
  int64_t* y = static_cast<int64_t*>(p[0]);
  const int64_t last = lines.items.first(end);
  for (int64_t item = lines.items.first(begin); item < last; ++item) {
    const LineBlock block(lines, item);
    if (lines.stride == 1) {
      y[block.line] = bestOfLine(d, p[1], block.first, load);
      continue;
    }
    D held[kReduceCols];
    int64_t index[kReduceCols];
    for (int64_t c = 0; c < block.count; ++c) {
      held[c] = flipped(load(p[1], block.first + c), d->flip);
      index[c] = 0;
    }
    for (int64_t i = 1; i < lines.extent; ++i)
      for (int64_t c = 0; c < block.count; ++c) {
        const D value = flipped(load(p[1], block.first + i * lines.stride + c), d->flip);
        const bool better = replaces(d, value, held[c]);
        held[c] = better ? value : held[c];
        index[c] = better ? i : index[c];
      }
    for (int64_t c = 0; c < block.count; ++c) y[block.line + c] = index[c];
  }
  return kDone;
}

}  // namespace

extern "C" int32_t aglow_arg_reduce_f32(const ArgReduceDesc* d, void* const* p, int64_t begin, int64_t end,
                                        Load<float>* load) {
  return argReduceItems<float>(d, p, begin, end, load);
}
extern "C" int32_t aglow_arg_reduce_f64(const ArgReduceDesc* d, void* const* p, int64_t begin, int64_t end,
                                        Load<double>* load) {
  return argReduceItems<double>(d, p, begin, end, load);
}
extern "C" int32_t aglow_arg_reduce_i64(const ArgReduceDesc* d, void* const* p, int64_t begin, int64_t end,
                                        Load<int64_t>* load) {
  return argReduceItems<int64_t>(d, p, begin, end, load);
}

}  // namespace aglow::cpu
