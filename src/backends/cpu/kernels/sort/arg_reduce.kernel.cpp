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

// Whether one of two elements, with its index, comes before the other as the result.
template <class D>
[[gnu::always_inline]] inline bool wins(const ArgReduceDesc* d, D value, int64_t index, D held, int64_t heldIndex) {
  const bool equal = (value == held) | ((value != value) & (held != held));
  if (equal) return d->last != 0 ? heldIndex < index : index < heldIndex;
  return replaces(d, value, held);
}

// One line whose elements are neighbours. Elements kReduceCols apart are a column each; the best of the columns is the
// best of the line.
template <class D>
[[gnu::always_inline]] inline int64_t bestOfLine(const ArgReduceDesc* d, const void* x, int64_t first, Load<D>* load) {
  const int64_t extent = d->lines.extent;
  D best = flipped(load(x, first), d->flip);
  int64_t index = 0, done = 1;
  if (extent >= 2 * kReduceCols) {
    D held[kReduceCols];
    int64_t row[kReduceCols];
    for (int64_t c = 0; c < kReduceCols; ++c) {
      held[c] = flipped(load(x, first + c), d->flip);
      row[c] = 0;
    }
    for (done = kReduceCols; done + kReduceCols <= extent; done += kReduceCols)
      for (int64_t c = 0; c < kReduceCols; ++c) {
        const D value = flipped(load(x, first + done + c), d->flip);
        const bool better = replaces(d, value, held[c]);
        held[c] = better ? value : held[c];
        row[c] = better ? done : row[c];
      }
    best = held[0];
    index = row[0];
    for (int64_t c = 1; c < kReduceCols; ++c)
      if (wins(d, held[c], row[c] + c, best, index)) {
        best = held[c];
        index = row[c] + c;
      }
  }
  for (; done < extent; ++done) {
    const D value = flipped(load(x, first + done), d->flip);
    if (!replaces(d, value, best)) continue;
    best = value;
    index = done;
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
