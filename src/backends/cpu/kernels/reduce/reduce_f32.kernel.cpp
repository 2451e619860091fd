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

// Neighbours combined lane by lane; there are at least as many as lanes. Of a last vector that reaches back into the
// one before it, only what is new counts.
template <int W>
[[gnu::always_inline]] inline Lanes<float, W> reducedToLanes(int64_t how, const float* x, int64_t count, float start) {
  using V = Lanes<float, W>;
  constexpr int kParts = 4;
  V part[kParts];
  for (V& lanes : part) lanes = splat<float, W>(start);
  int64_t i = 0;
  for (; i + kParts * W <= count; i += kParts * W)
    for (int j = 0; j < kParts; ++j) part[j] = combinedLanes(how, part[j], loadLanes<V>(x + i + j * W));
  for (; i + W <= count; i += W) part[0] = combinedLanes(how, part[0], loadLanes<V>(x + i));
  if (i < count) {
    V last = loadLanes<V>(x + count - W);
    for (int lane = 0; lane < W; ++lane) last[lane] = lane < W - (count - i) ? start : last[lane];
    part[1] = combinedLanes(how, part[1], last);
  }
  return combinedLanes(how, combinedLanes(how, part[0], part[1]), combinedLanes(how, part[2], part[3]));
}

// How many neighbours are combined before the lanes meet.
template <int W>
inline constexpr int64_t kShortRun = 4 * W * kShortSum;

[[gnu::always_inline]] inline double reducedOneByOne(int64_t how, const float* x, int64_t count, double held) {
  for (int64_t i = 0; i < count; ++i) held = combined(how, held, static_cast<double>(x[i]));
  return held;
}

// `count` neighbours combined with `held`.
template <int W>
[[gnu::always_inline]] inline double reducedRun(int64_t how, const float* x, int64_t count, double held, float start) {
  while (count >= W) {
    const int64_t some = how == kSum && count >= kShortRun<W> + W ? kShortRun<W> : count;
    const Lanes<float, W> all = reducedToLanes<W>(how, x, some, start);
    double lane[W];
    for (int j = 0; j < W; ++j) lane[j] = static_cast<double>(all[j]);
    for (int half = W / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) lane[j] = combined(how, lane[j], lane[j + half]);
    if (leftRange(how, lane[0])) lane[0] = reducedOneByOne(how, x, some, 0);
    held = combined(how, held, lane[0]);
    x += some;
    count -= some;
  }
  return reducedOneByOne(how, x, count, held);
}

// W short runs, which meet their lanes together: lane r of the result is of run r.
template <int W>
[[gnu::always_inline]] inline Lanes<double, W> reducedRuns(int64_t how, const float* const (&x)[W], int64_t count,
                                                           double start) {
  using Wide = Lanes<double, W>;
  Lanes<float, W> all[W];
  for (int r = 0; r < W; ++r) all[r] = reducedToLanes<W>(how, x[r], count, static_cast<float>(start));
  transposeLanes<float, W>(all);
  Wide lane[W];
  for (int j = 0; j < W; ++j) lane[j] = __builtin_convertvector(all[j], Wide);
  for (int half = W / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) lane[j] = combinedLanes(how, lane[j], lane[j + half]);
  if (how == kSum && __builtin_reduce_or(lane[0] - lane[0] != 0))
    for (int r = 0; r < W; ++r)
      if (leftRange(how, lane[0][r])) lane[0][r] = reducedOneByOne(how, x[r], count, 0);
  return combinedLanes(how, splat<double, W>(start), lane[0]);
}

// N columns of `Rows` places.
template <int N, int Rows>
[[gnu::always_inline]] inline void addRows(int64_t how, const float* const (&row)[Rows], int64_t col, float* part) {
  using V = Lanes<float, N>;
  V total = loadLanes<V>(part + col);
  for (int r = 0; r < Rows; ++r) total = combinedLanes(how, total, loadLanes<V>(row[r] + col));
  storeLanes(part + col, total);
}

template <int W, int Rows>
[[gnu::always_inline]] inline void addPlaces(int64_t how, const float* x, Walk<1>& place, int64_t count, float* part) {
  const float* row[Rows];
  for (int r = 0; r < Rows; ++r, place.next()) row[r] = x + place.offset[0];
  int64_t col = 0;
  for (; col + W <= count; col += W) addRows<W, Rows>(how, row, col, part);
  for (; W > 4 && col + 4 <= count; col += 4) addRows<4, Rows>(how, row, col, part);
  for (; col < count; ++col) addRows<1, Rows>(how, row, col, part);
}

// `count` results side by side, each over all places; `run` is 1. A few places of all columns are read at a time, so
// that memory is read in long pieces.
template <int W>
[[gnu::always_inline]] inline void reducedColumns(const ReduceDesc* d, const float* x, int64_t count, float start,
                                                  double* held) {
  constexpr int kRows = 4;
  Walk<1> place(d->reduced, 0);
  for (int64_t n = 0; n < d->places;) {
    const int64_t begin = n, end = d->how == kSum ? least(d->places, n + kShortSum) : d->places;
    float part[kWideCols];
    for (int64_t i = 0; i < count; ++i) part[i] = start;
    for (; n + kRows <= end; n += kRows) addPlaces<W, kRows>(d->how, x, place, count, part);
    for (; n < end; ++n) addPlaces<W, 1>(d->how, x, place, count, part);
    bool left = false;
    for (int64_t i = 0; i < count; ++i) left |= leftRange(d->how, static_cast<double>(part[i]));
    if (!left) {
      for (int64_t i = 0; i < count; ++i) held[i] = combined(d->how, held[i], static_cast<double>(part[i]));
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      double value = static_cast<double>(part[i]);
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
  const auto store = [&](int64_t at, double value) __attribute__((always_inline)) {
    y[at] = static_cast<float>(d->divisor >= 0 ? divided(value, d->divisor, false) : value);
  };
  int64_t item = d->items.first(begin);
  Walk<1> walk(d->kept, item);
  if (d->run == 1) {
    for (; item < last; ++item, walk.next()) {
      const int64_t col = item % blocks * d->block;
      const int64_t count = least(d->cols - col, d->block);
      double held[kWideCols];
      for (int64_t i = 0; i < count; ++i) held[i] = start;
      reducedColumns<W>(d, x + walk.offset[0], count, static_cast<float>(start), held);
      for (int64_t i = 0; i < count; ++i) store(item / blocks * d->cols + col + i, held[i]);
    }
    return kDone;
  }
  if (d->places == 1 && d->run >= W && d->run < kShortRun<W>) {
    while (item + W <= last) {
      const float* runs[W];
      for (int r = 0; r < W; ++r, walk.next()) runs[r] = x + walk.offset[0];
      Lanes<double, W> held = reducedRuns<W>(d->how, runs, d->run, start);
      if (d->divisor >= 0) held /= static_cast<double>(d->divisor);
      storeLanes(y + item, __builtin_convertvector(held, Lanes<float, W>));
      item += W;
    }
  }
  for (; item < last; ++item, walk.next()) {
    double held = start;
    Walk<1> place(d->reduced, 0);
    for (int64_t n = 0; n < d->places; ++n, place.next())
      held = reducedRun<W>(d->how, x + walk.offset[0] + place.offset[0], d->run, held, static_cast<float>(start));
    store(item, held);
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
