// Maxima and means of f32 over windows, one axis after the other: the rows that a row of results sees are folded into
// one, and neighbours in it afterwards. A window then takes as many steps as its sides are long, not as it has taps.
#include "backends/cpu/kernels/loops.h"
#include "backends/cpu/kernels/pool/windows.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

namespace {

struct LargestFold {
  static constexpr float kStart = -__builtin_inff();
  template <class V>
  static AGLOW_INLINE V fold(V largest, V value) {
    const V ordered = value > largest ? value : largest;
    return value != value ? value : ordered;  // NaN wins
  }
  static AGLOW_INLINE void count(const PoolDesc*, const PoolBlock&, float (&)[kPoolCols]) {}
  static AGLOW_INLINE float outside(const PoolDesc*, const PoolBlock&) { return 1; }
  template <class V>
  static AGLOW_INLINE V finish(V largest, V, float) {
    return largest;
  }
};

struct MeanFold {
  static constexpr float kStart = 0;
  template <class V>
  static AGLOW_INLINE V fold(V sum, V value) {
    return sum + value;
  }
  // Taps that count along the innermost axis, for each result of the block.
  static AGLOW_INLINE void count(const PoolDesc* d, const PoolBlock& block, float (&counts)[kPoolCols]) {
    const WindowAxis& inner = d->window.axis[d->window.rank - 1];
    for (int64_t c = 0; c < block.count; ++c)
      counts[c] = static_cast<float>(countedTaps(inner, block.col + c, d->countPadding != 0));
  }
  // And along the others.
  static AGLOW_INLINE float outside(const PoolDesc* d, const PoolBlock& block) {
    int64_t taps = 1, row = block.row;
    for (int64_t a = d->window.rank - 2; a >= 0; --a) {
      const WindowAxis& axis = d->window.axis[a];
      taps *= countedTaps(axis, row % axis.result, d->countPadding != 0);
      row /= axis.result;
    }
    return static_cast<float>(taps);
  }
  // A window without elements has the mean 0.
  template <class V>
  static AGLOW_INLINE V finish(V sum, V inside, float outside) {
    const V taps = inside * outside;
    return sum / (taps < 1 ? taps * 0 + 1 : taps);
  }
};

// Elements a stride apart.
template <class V>
AGLOW_INLINE V strided(const float* from, int64_t stride) {
  constexpr int kLanes = sizeof(V) / sizeof(float);
  if constexpr (kLanes == 1) {
    return *from;
  } else {
    if (stride == 1) return loadLanes<V>(from);
    V value;
    if (stride == 2) {
      const V low = loadLanes<V>(from), high = loadLanes<V>(from + kLanes);
      AGLOW_UNROLL for (int i = 0; i < kLanes; ++i) value[i] = 2 * i < kLanes ? low[2 * i] : high[2 * i - kLanes];
      return value;
    }
    AGLOW_UNROLL for (int i = 0; i < kLanes; ++i) value[i] = from[i * stride];
    return value;
  }
}

template <class V>
AGLOW_INLINE void put(float* to, V value) {
  __builtin_memcpy(to, &value, sizeof(V));
}
template <class V>
AGLOW_INLINE V same(float value) {
  if constexpr (sizeof(V) == sizeof(float))
    return value;
  else
    return splat<float, sizeof(V) / sizeof(float)>(value);
}

// f(V{}, i) for elements 0 to count, as many at a time as fit; the last ones may be done twice.
template <int W, class F>
AGLOW_INLINE void inVectors(int64_t count, F f) {
  const auto pass = [&](auto v) __attribute__((always_inline)) {
    constexpr int64_t kLanes = sizeof(v) / sizeof(float);
    if (count < kLanes) return false;
    int64_t i = 0;
    AGLOW_ROLLED for (; i + kLanes <= count; i += kLanes) f(v, i);
    if (i < count) f(v, count - kLanes);
    return true;
  };
  if (pass(Lanes<float, W>{})) return;
  if constexpr (W > 8)
    if (pass(Lanes<float, 8>{})) return;
  if constexpr (W > 4)
    if (pass(Lanes<float, 4>{})) return;
  pass(float{});
}

template <int W, class Fold>
AGLOW_INLINE int32_t poolRowsOf(const PoolDesc* d, void* const* p, int64_t begin, int64_t end) {
  const WindowAxis& inner = d->window.axis[d->window.rank - 1];
  const float* x = static_cast<const float*>(p[1]);
  float* y = static_cast<float*>(p[0]);
  float line[kPoolSpan + 2 * W];
  const float* rows[kPoolRows];
  float counts[kPoolCols];
  int64_t counted = -1;
  const int64_t last = d->items.first(end);
  for (int64_t item = d->items.first(begin); item < last; ++item) {
    const PoolBlock block(d, item);
    const TapRows taps(d, block);
    const int64_t places = taps.taps.count();
    if (places > 0) {
      Walk<1> walk(taps.taps, 0);
      for (int64_t n = 0; n < places; ++n, walk.next()) rows[n] = x + taps.base + walk.offset[0];
    }

    // The line begins where the first window does, which may be in the padding.
    const int64_t low = block.col * inner.stride - inner.before;
    const int64_t span = (block.count - 1) * inner.stride + (inner.kernel - 1) * inner.dilation + 1;
    const int64_t from = clamped(-low, 0, span), to = clamped(inner.input - low, from, span);
    for (int64_t i = 0; i < from; ++i) line[i] = Fold::kStart;
    for (int64_t i = to; i < span; ++i) line[i] = Fold::kStart;
    inVectors<W>(to - from, [&](auto v, int64_t i) __attribute__((always_inline)) {
      using V = decltype(v);
      V held = same<V>(Fold::kStart);
      AGLOW_ROLLED for (int64_t n = 0; n < places; ++n) {
        V value;
        __builtin_memcpy(&value, rows[n] + low + from + i, sizeof(V));
        held = Fold::fold(held, value);
      }
      put(line + from + i, held);
    });

    if (counted != block.col) Fold::count(d, block, counts);
    counted = block.col;
    const float outside = Fold::outside(d, block);
    inVectors<W>(block.count, [&](auto v, int64_t c) __attribute__((always_inline)) {
      using V = decltype(v);
      V held = same<V>(Fold::kStart);
      const float* first = line + c * inner.stride;
      for (int64_t k = 0; k < inner.kernel; ++k)
        held = Fold::fold(held, strided<V>(first + k * inner.dilation, inner.stride));
      V inside;
      __builtin_memcpy(&inside, counts + c, sizeof(V));
      put(y + block.result + c, Fold::finish(held, inside, outside));
    });
  }
  return kDone;
}

}  // namespace

#define AGLOW_POOL_ROWS(W)                                                                                 \
  extern "C" int32_t aglow_max_rows_w##W(const PoolDesc* d, void* const* p, int64_t begin, int64_t end) {  \
    return poolRowsOf<W, LargestFold>(d, p, begin, end);                                                   \
  }                                                                                                        \
  extern "C" int32_t aglow_mean_rows_w##W(const PoolDesc* d, void* const* p, int64_t begin, int64_t end) { \
    return poolRowsOf<W, MeanFold>(d, p, begin, end);                                                      \
  }
AGLOW_POOL_ROWS(4)
AGLOW_POOL_ROWS(8)
AGLOW_POOL_ROWS(16)

}  // namespace aglow::cpu
