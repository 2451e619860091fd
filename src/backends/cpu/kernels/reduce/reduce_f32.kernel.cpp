// Sums, means and extremes of f32 on vectors. Sums are short in f32 and join in f64, so long axes lose nothing.
#include "backends/cpu/kernels/reduce/cpu_desc.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

namespace {

// How many values a lane adds up before the sum is widened.
constexpr int64_t kShortSum = 32;

template <class V>
[[gnu::always_inline]] inline V combinedLanes(int64_t how, V held, V value) {
  if (how == kSum) return held + value;
  if (how == kMax) return ((value > held) | (value != value)) ? value : held;
  return ((value < held) | (value != value)) ? value : held;
}

// A short sum may leave the range of f32 although the whole one does not; it is then taken in f64.
[[gnu::always_inline]] inline bool leftRange(int64_t how, double value) { return how == kSum && value - value != 0; }

// `count` neighbours combined with `held`.
template <int W>
[[gnu::always_inline]] inline double reducedRun(int64_t how, const float* x, int64_t count, double held, float start) {
  using V = Lanes<float, W>;
  constexpr int kParts = 4;
  constexpr int64_t kStep = W * kParts;
  int64_t i = 0;
  while (i + W <= count) {
    V part[kParts];
    for (V& lanes : part) lanes = splat<float, W>(start);
    const int64_t begin = i, end = how == kSum ? least(count, i + kStep * kShortSum) : count;
    for (; i + kStep <= end; i += kStep)
      for (int j = 0; j < kParts; ++j) part[j] = combinedLanes(how, part[j], loadLanes<V>(x + i + j * W));
    for (; i + W <= end; i += W) part[0] = combinedLanes(how, part[0], loadLanes<V>(x + i));
    const V all = combinedLanes(how, combinedLanes(how, part[0], part[1]), combinedLanes(how, part[2], part[3]));
    double lane[W];
    for (int j = 0; j < W; ++j) lane[j] = static_cast<double>(all[j]);
    for (int half = W / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) lane[j] = combined(how, lane[j], lane[j + half]);
    if (leftRange(how, lane[0])) {
      lane[0] = 0;
      for (int64_t j = begin; j < i; ++j) lane[0] += static_cast<double>(x[j]);
    }
    held = combined(how, held, lane[0]);
  }
  for (; i < count; ++i) held = combined(how, held, static_cast<double>(x[i]));
  return held;
}

// `count` results side by side, each over all places; `run` is 1.
template <int W>
[[gnu::always_inline]] inline void reducedColumns(const ReduceDesc* d, const float* x, int64_t count, float start,
                                                  double (&held)[kReduceCols]) {
  using V = Lanes<float, W>;
  constexpr int kVectors = kReduceCols / W;
  const int64_t vectors = count / W;
  Walk<1> place(d->reduced, 0);
  for (int64_t n = 0; n < d->places;) {
    const int64_t begin = n, end = d->how == kSum ? least(d->places, n + kShortSum) : d->places;
    V part[kVectors];
    for (V& lanes : part) lanes = splat<float, W>(start);
    float rest[W];
    for (float& value : rest) value = start;
    for (; n < end; ++n, place.next()) {
      const float* row = x + place.offset[0];
      if (vectors == kVectors) {
        for (int v = 0; v < kVectors; ++v) part[v] = combinedLanes(d->how, part[v], loadLanes<V>(row + v * W));
        continue;
      }
      for (int64_t v = 0; v < vectors; ++v) part[v] = combinedLanes(d->how, part[v], loadLanes<V>(row + v * W));
      for (int64_t i = 0; i < count - vectors * W; ++i) {
        const float value = row[vectors * W + i];
        rest[i] = combinedLanes(d->how, rest[i], value);
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      double value = static_cast<double>(i < vectors * W ? part[i / W][i % W] : rest[i - vectors * W]);
      if (leftRange(d->how, value)) {
        value = 0;
        Walk<1> again(d->reduced, begin);
        for (int64_t m = begin; m < end; ++m, again.next()) value += static_cast<double>(x[again.offset[0] + i]);
      }
      held[i] = combined(d->how, held[i], value);
    }
  }
}

template <int W>
[[gnu::always_inline]] inline int32_t reduceLanes(const ReduceDesc* d, void* const* p, int64_t begin, int64_t end) {
  const float* x = static_cast<const float*>(p[1]);
  float* y = static_cast<float*>(p[0]);
  const double start = __builtin_bit_cast(double, d->start);
  const int64_t blocks = d->kept.axis[d->kept.rank - 1].extent;
  const int64_t last = d->items.first(end);
  int64_t item = d->items.first(begin);
  Walk<1> walk(d->kept, item);
  for (; item < last; ++item, walk.next()) {
    const int64_t col = item % blocks * kReduceCols;
    const int64_t count = least(d->cols - col, kReduceCols);
    double held[kReduceCols];
    for (int64_t i = 0; i < count; ++i) held[i] = start;
    if (d->run == 1) {
      reducedColumns<W>(d, x + walk.offset[0], count, static_cast<float>(start), held);
    } else {
      Walk<1> place(d->reduced, 0);
      for (int64_t n = 0; n < d->places; ++n, place.next())
        held[0] =
            reducedRun<W>(d->how, x + walk.offset[0] + place.offset[0], d->run, held[0], static_cast<float>(start));
    }
    for (int64_t i = 0; i < count; ++i) {
      const double value = d->divisor >= 0 ? divided(held[i], d->divisor, false) : held[i];
      y[item / blocks * d->cols + col + i] = static_cast<float>(value);
    }
  }
  return kDone;
}

}  // namespace

extern "C" int32_t aglow_reduce_lanes_w4(const ReduceDesc* d, void* const* p, int64_t begin, int64_t end) {
  return reduceLanes<4>(d, p, begin, end);
}
extern "C" int32_t aglow_reduce_lanes_w8(const ReduceDesc* d, void* const* p, int64_t begin, int64_t end) {
  return reduceLanes<8>(d, p, begin, end);
}
extern "C" int32_t aglow_reduce_lanes_w16(const ReduceDesc* d, void* const* p, int64_t begin, int64_t end) {
  return reduceLanes<16>(d, p, begin, end);
}

}  // namespace aglow::cpu
