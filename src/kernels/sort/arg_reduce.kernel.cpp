// Where the largest or smallest elements along an axis are. NaN wins over every number.
#include "kernels/sort/cpu_desc.h"

namespace aglow::cpu {

namespace {

template <class D>
[[gnu::always_inline]] inline bool replaces(const ArgReduceDesc* d, D value, D held) {
  if (held != held) return value != value && d->last != 0;
  const bool beats = value != value || (d->largest != 0 ? held < value : value < held);
  return beats || (d->last != 0 && value == held);
}

template <class D>
[[gnu::always_inline]] inline int32_t argReduceItems(const ArgReduceDesc* d, void* const* p, int64_t begin, int64_t end,
                                                     Load<D>* load) {
  const LinesDesc& lines = d->lines;
  int64_t* y = static_cast<int64_t*>(p[0]);
  const int64_t last = lines.items.first(end);
  for (int64_t item = lines.items.first(begin); item < last; ++item) {
    const LineBlock block(lines, item);
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
