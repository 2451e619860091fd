// What a run tells of a value, in two steps: items look at the elements, each twice while they are near, and a last
// step adds what they found to what is known.
#include "backends/cpu/kernels/loops.h"
#include "backends/cpu/kernels/observe/observe_desc.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

namespace {

// The bins of neighbours, as HistogramBins::bin has them; `odd` becomes true in lanes that are not finite.
template <class V>
AGLOW_INLINE V binsOf(const HistogramBins& bins, V bits, V& odd) {
  const V magnitude = (bits & INT32_MAX) >> bins.dropped;
  const V least = magnitude < 1 ? magnitude : V(1);
  V step = magnitude - bins.below;
  step = step > least ? step : least;
  step = step < bins.side ? step : V(bins.side);
  const V infinite = magnitude >= bins.infinity;
  odd |= infinite;
  // A comparison gives -1 where it holds: one step more, on the positive side.
  step -= infinite;
  const V sign = (bits >> 31) & ~infinite;
  return bins.side + ((step ^ sign) - sign);
}

// Bins of some neighbours are written down before they are counted, which takes them one by one.
constexpr int64_t kSome = 512;

// Counts `count` neighbours, of which `readable` lie in memory; gives whether one of them, or of those read with them,
// is not finite.
template <int W>
AGLOW_INLINE bool countRun(const ObserveDesc* d, const float* x, int64_t count, int64_t readable, uint32_t* tables) {
  using V = Lanes<int32_t, W>;
  using One = Lanes<int32_t, 1>;
  V odd = splat<int32_t, W>(0);
  One oddOne = splat<int32_t, 1>(0);
  uint32_t* const table[kCountTables] = {tables, tables + d->stride, tables + 2 * d->stride, tables + 3 * d->stride};
  for (int64_t first = 0; first < count; first += kSome) {
    const int64_t some = least(count - first, kSome);
    alignas(64) int32_t at[kSome];
    int64_t i = 0;
    for (; i < some && first + i + W <= readable; i += W)
      storeLanes(at + i, binsOf(d->bins, loadLanes<V>(reinterpret_cast<const int32_t*>(x + first + i)), odd));
    for (; i < some; ++i)
      storeLanes(at + i, binsOf(d->bins, loadLanes<One>(reinterpret_cast<const int32_t*>(x + first + i)), oddOne));
    int64_t n = 0;
    for (; n + kCountTables <= some; n += kCountTables)
      for (int64_t t = 0; t < kCountTables; ++t) ++table[t][at[n + t]];
    for (; n < some; ++n) ++table[0][at[n]];
  }
  return __builtin_reduce_or(odd) != 0 || oddOne[0] != 0;
}

// Ends and sums of some columns of lanes. Where something is not finite it counts for neither end, and as zero.
template <int W, bool kOdd>
struct Moments {
  using V = Lanes<float, W>;
  using Wide = Lanes<double, W>;
  V low = splat<float, W>(__builtin_inff()), high = splat<float, W>(-__builtin_inff());
  Wide sum = splat<double, W>(0), squares = splat<double, W>(0);

  AGLOW_INLINE void add(V x) {
    V lowest = x, highest = x;
    if constexpr (kOdd) {
      const auto finite = x - x == 0;
      lowest = finite ? x : V(__builtin_inff());
      highest = finite ? x : V(-__builtin_inff());
      x = finite ? x : V(0);
    }
    low = lowest < low ? lowest : low;
    high = highest > high ? highest : high;
    const Wide wide = __builtin_convertvector(x, Wide);
    sum += wide;
    squares += wide * wide;
  }
};

AGLOW_INLINE double lesser(double a, double b) { return b < a ? b : a; }
AGLOW_INLINE double greater(double a, double b) { return b > a ? b : a; }

// Columns of lanes, W at a time, over all rows.
template <int W, bool kOdd>
AGLOW_INLINE int64_t columns(const float* x, int64_t rows, int64_t lanes, int64_t first, double* found) {
  int64_t c = first;
  for (; c + W <= lanes; c += W) {
    Moments<W, kOdd> all;
    for (int64_t r = 0; r < rows; ++r) all.add(loadLanes<Lanes<float, W>>(x + r * lanes + c));
    storeLanes(found + kSmallest * lanes + c, __builtin_convertvector(all.low, Lanes<double, W>));
    storeLanes(found + kLargest * lanes + c, __builtin_convertvector(all.high, Lanes<double, W>));
    storeLanes(found + kMean * lanes + c, all.sum);
    storeLanes(found + kSquare * lanes + c, all.squares);
  }
  return c;
}

// A run of one channel, several vectors at a time.
template <int W, bool kOdd>
AGLOW_INLINE void run(const float* x, int64_t count, double* found) {
  constexpr int kParts = 2;
  Moments<W, kOdd> part[kParts];
  Moments<1, kOdd> rest;
  int64_t i = 0;
  for (; i + kParts * W <= count; i += kParts * W)
    for (int j = 0; j < kParts; ++j) part[j].add(loadLanes<Lanes<float, W>>(x + i + j * W));
  for (; i + W <= count; i += W) part[0].add(loadLanes<Lanes<float, W>>(x + i));
  for (; i < count; ++i) rest.add(loadLanes<Lanes<float, 1>>(x + i));
  double low = rest.low[0], high = rest.high[0], sum = rest.sum[0], squares = rest.squares[0];
  for (int j = 0; j < kParts; ++j)
    for (int lane = 0; lane < W; ++lane) {
      low = lesser(low, part[j].low[lane]);
      high = greater(high, part[j].high[lane]);
      sum += part[j].sum[lane];
      squares += part[j].squares[lane];
    }
  found[kSmallest] = low;
  found[kLargest] = high;
  found[kMean] = sum;
  found[kSquare] = squares;
}

template <int W, bool kOdd>
AGLOW_INLINE void momentsOf(const float* x, int64_t rows, int64_t lanes, double* found) {
  if (lanes == 1)
    run<W, kOdd>(x, rows, found);
  else
    columns<1, kOdd>(x, rows, lanes, columns<W, kOdd>(x, rows, lanes, 0, found), found);
}

template <int W>
AGLOW_INLINE void lookAt(const ObserveDesc* d, const float* all, int64_t item, double* found, uint32_t* tables) {
  const int64_t lanes = d->form.lanes, block = item / d->pieces, first = item % d->pieces * d->pieceRows;
  const int64_t rows = least(d->pieceRows, d->form.rows - first);
  const int64_t own = least(lanes, d->channels - block % d->form.groups * lanes);
  const float* x = all + (block * d->form.rows + first) * lanes;
  bool odd = false;
  if (own == lanes)
    odd = countRun<W>(d, x, rows * lanes, rows * lanes, tables);
  else
    for (int64_t r = 0; r < rows; ++r) odd |= countRun<W>(d, x + r * lanes, own, lanes, tables);
  if (odd)
    momentsOf<W, true>(x, rows, lanes, found);
  else
    momentsOf<W, false>(x, rows, lanes, found);
}

template <int W>
AGLOW_INLINE int32_t observe(const ObserveDesc* d, void* const* p, int64_t begin, int64_t end) {
  const float* x = static_cast<const float*>(p[4]);
  double* found = static_cast<double*>(p[5]);
  for (int64_t unit = begin; unit < end; ++unit) {
    uint32_t* tables = reinterpret_cast<uint32_t*>(static_cast<char*>(p[5]) + d->foundBytes()) + unit * d->unitCounts();
    using V = Lanes<uint32_t, W>;
    for (int64_t i = 0; i < d->unitCounts(); i += W) storeLanes(tables + i, splat<uint32_t, W>(0));
    for (int64_t item = d->items.first(unit); item < d->items.first(unit + 1); ++item)
      lookAt<W>(d, x, item, found + item * d->itemDoubles(), tables);
    for (int64_t i = 0; i < d->stride; i += W) {
      V sum = loadLanes<V>(tables + i);
      for (int64_t t = 1; t < kCountTables; ++t) sum += loadLanes<V>(tables + t * d->stride + i);
      storeLanes(tables + i, sum);
    }
  }
  return kDone;
}

template <int W>
AGLOW_INLINE int64_t addCounts(const ObserveDesc* d, void* const* p, int64_t bin) {
  using Wide = Lanes<int64_t, W>;
  const int64_t* known = static_cast<const int64_t*>(p[2]);
  int64_t* counts = static_cast<int64_t*>(p[0]);
  const auto* tables = reinterpret_cast<const uint32_t*>(static_cast<const char*>(p[5]) + d->foundBytes());
  for (; bin + W <= d->bins.counts(); bin += W) {
    Wide sum = loadLanes<Wide>(known + bin);
    for (int64_t unit = 0; unit < d->items.units(); ++unit) {
      const auto counted = loadLanes<Lanes<uint32_t, W>>(tables + unit * d->unitCounts() + bin);
      sum += __builtin_convertvector(counted, Wide);
    }
    storeLanes(counts + bin, sum);
  }
  return bin;
}

AGLOW_INLINE void addChannels(const ObserveDesc* d, void* const* p) {
  const double* known = static_cast<const double*>(p[3]);
  double* to = static_cast<double*>(p[1]);
  const double* found = static_cast<const double*>(p[5]);
  const ObservedForm& form = d->form;
  const double each = static_cast<double>(most(form.outer * form.rows, 1));
  for (int64_t channel = 0; channel < d->channels; ++channel) {
    const int64_t group = channel / form.lanes, lane = channel % form.lanes;
    double low = known[kSmallest * d->channels + channel], high = known[kLargest * d->channels + channel];
    double sum = 0, squares = 0;
    for (int64_t outer = 0; outer < form.outer; ++outer)
      for (int64_t piece = 0; piece < d->pieces; ++piece) {
        const int64_t item = (outer * form.groups + group) * d->pieces + piece;
        const double* one = found + item * d->itemDoubles() + lane;
        low = lesser(low, one[kSmallest * form.lanes]);
        high = greater(high, one[kLargest * form.lanes]);
        sum += one[kMean * form.lanes];
        squares += one[kSquare * form.lanes];
      }
    to[kSmallest * d->channels + channel] = low;
    to[kLargest * d->channels + channel] = high;
    to[kMean * d->channels + channel] = known[kMean * d->channels + channel] + onGrid(sum / each);
    to[kSquare * d->channels + channel] = known[kSquare * d->channels + channel] + onGrid(squares / each);
  }
}

}  // namespace

extern "C" int32_t aglow_observe_w4(const ObserveDesc* d, void* const* p, int64_t begin, int64_t end) {
  return observe<4>(d, p, begin, end);
}
extern "C" int32_t aglow_observe_w8(const ObserveDesc* d, void* const* p, int64_t begin, int64_t end) {
  return observe<8>(d, p, begin, end);
}
extern "C" int32_t aglow_observe_w16(const ObserveDesc* d, void* const* p, int64_t begin, int64_t end) {
  return observe<16>(d, p, begin, end);
}

// Its one unit adds up what all others found.
extern "C" int32_t aglow_observed(const ObserveDesc* d, void* const* p, int64_t begin, int64_t end) {
  if (begin == end) return kDone;
  addCounts<1>(d, p, addCounts<4>(d, p, 0));
  addChannels(d, p);
  return kDone;
}

}  // namespace aglow::cpu
