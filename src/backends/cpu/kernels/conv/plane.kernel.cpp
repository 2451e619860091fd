// Convolutions of small groups, maxima and means over windows: a few columns of a row of results stay in registers
// while the taps run past, with vectors along the channels.
#include "backends/cpu/kernels/conv/plane_desc.h"
#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

// What every element is at least as large as, in all places of a vector.
template <class T>
inline constexpr T kLeast = -static_cast<T>(__builtin_inff());
template <>
inline constexpr uint8_t kLeast<uint8_t> = 0;
template <>
inline constexpr int8_t kLeast<int8_t> = -128;

template <class T>
struct Row {
  alignas(64) T lanes[16];
};
template <class T>
inline constexpr Row<T> kLeastRow = {{kLeast<T>, kLeast<T>, kLeast<T>, kLeast<T>, kLeast<T>, kLeast<T>, kLeast<T>,
                                      kLeast<T>, kLeast<T>, kLeast<T>, kLeast<T>, kLeast<T>, kLeast<T>, kLeast<T>,
                                      kLeast<T>, kLeast<T>}};

// How a window is folded: what is read, what positions outside of the input hold and whether rows of them count, how a
// tap is taken in, how the result is finished.
template <class T, int W>
struct Fold {
  using Element = T;
  using V = Lanes<T, W>;
  static AGLOW_INLINE bool countsOutside() { return false; }
  static AGLOW_INLINE V start() { return V{}; }
  static AGLOW_INLINE V load(const T* at) { return loadLanes<V>(at); }
  static AGLOW_INLINE V tap(int64_t) { return V{}; }
  static AGLOW_INLINE V finish(const PlaneDesc&, V held, int64_t, int64_t) { return held; }
};

template <int W>
struct Weighted : Fold<float, W> {
  using V = Lanes<float, W>;
  const float* filter;  // of the plane's block
  explicit AGLOW_INLINE Weighted(const float* weights) : filter(weights) {}
  static AGLOW_INLINE const float* outside() { return kZeros; }
  AGLOW_INLINE V tap(int64_t index) const { return loadLanes<V>(filter + index * W); }
  static AGLOW_INLINE V fold(V sum, V value, V weights) { return value * weights + sum; }
};

// Bytes, one in each lane of i32.
template <int W>
struct ByteWeighted : Fold<int32_t, W> {
  using Element = uint8_t;
  using V = Lanes<int32_t, W>;
  const int8_t* filter;  // of the plane's block
  const uint8_t* around;
  bool counts;
  Dot<W>* dot;
  AGLOW_INLINE ByteWeighted(const int8_t* weights, const uint8_t* outer, bool outerCounts, Dot<W>* product)
      : filter(weights), around(outer), counts(outerCounts), dot(product) {}
  AGLOW_INLINE bool countsOutside() const { return counts; }
  AGLOW_INLINE const uint8_t* outside() const { return around; }
  static AGLOW_INLINE V load(const uint8_t* at) { return convertLanes<V>(loadLanes<Lanes<uint8_t, W>>(at)); }
  AGLOW_INLINE V tap(int64_t index) const { return convertLanes<V>(loadLanes<Lanes<int8_t, W>>(filter + index * W)); }
  AGLOW_INLINE V fold(V sum, V value, V weights) const { return dot(sum, value, weights); }
};

// Each lane reads the M lanes of its group, one after the other.
template <int W, int M>
struct Grouped : Fold<float, W> {
  using V = Lanes<float, W>;
  struct Weights {
    V of[M];
  };
  const float* filter;  // of the plane's block
  explicit AGLOW_INLINE Grouped(const float* weights) : filter(weights) {}
  static AGLOW_INLINE const float* outside() { return kZeros; }
  AGLOW_INLINE Weights tap(int64_t index) const {
    Weights weights;
    AGLOW_UNROLL for (int m = 0; m < M; ++m) weights.of[m] = loadLanes<V>(filter + (index * M + m) * W);
    return weights;
  }
  template <int Member, int... I>
  static AGLOW_INLINE V member(V value, LaneList<I...>) {
    return __builtin_shufflevector(value, value, (I / M * M + Member)...);
  }
  template <int... Member>
  static AGLOW_INLINE V sum(V sum, V value, const Weights& weights, LaneList<Member...>) {
    ((sum = member<Member>(value, LanesUpTo<W>{}) * weights.of[Member] + sum), ...);
    return sum;
  }
  static AGLOW_INLINE V fold(V held, V value, const Weights& weights) {
    return sum(held, value, weights, LanesUpTo<M>{});
  }
};

template <class T, int W>
struct Largest : Fold<T, W> {
  using V = Lanes<T, W>;
  static AGLOW_INLINE const T* outside() { return kLeastRow<T>.lanes; }
  static AGLOW_INLINE V start() { return loadLanes<V>(outside()); }
  static AGLOW_INLINE V fold(V largest, V value, V) {
    const V ordered = value > largest ? value : largest;
    return value != value ? value : ordered;  // NaN wins
  }
};

template <int W>
struct Mean : Fold<float, W> {
  using V = Lanes<float, W>;
  static AGLOW_INLINE const float* outside() { return kZeros; }
  static AGLOW_INLINE V fold(V sum, V value, V) { return sum + value; }
  static AGLOW_INLINE int64_t counted(int64_t first, int64_t dilation, int64_t kernel, int64_t extent, int64_t before,
                                      int64_t after) {
    const Taps taps = tapsInside(first + before, dilation, kernel, extent + before + after);
    return larger(taps.end - taps.begin, 0);
  }
  static AGLOW_INLINE V finish(const PlaneDesc& d, V sum, int64_t row, int64_t column) {
    const int64_t y = row * d.sy - d.py, x = column * d.sx - d.px, p = d.countPadding;
    const int64_t rows = counted(y, d.dy, d.kh, d.height, p * d.py, p * d.bottom);
    const int64_t columns = counted(x, d.dx, d.kw, d.width, p * d.px, p * d.right);
    return sum / splat<float, W>(static_cast<float>(larger(rows * columns, 1)));
  }
};

template <int W, int R, class Folding, class Out>
AGLOW_INLINE void foldTile(const PlaneDesc& d, const Folding& fold, const typename Folding::Element* plane, int64_t row,
                           int64_t column, Out out) {
  using T = typename Folding::Element;
  using V = typename Folding::V;
  V held[R];
  AGLOW_UNROLL for (int r = 0; r < R; ++r) held[r] = Folding::start();
  const int64_t top = row * d.sy - d.py, first = column * d.sx - d.px;
  const bool everyRow = fold.countsOutside();
  const Taps rows = everyRow ? Taps{0, d.kh} : tapsInside(top, d.dy, d.kh, d.height);
  AGLOW_ROLLED for (int64_t ky = rows.begin; ky < rows.end; ++ky) {
    const int64_t y = top + ky * d.dy;
    const bool rowOutside = everyRow && (y < 0 || y >= d.height);
    for (int64_t kx = 0; kx < d.kw; ++kx) {
      const int64_t left = first + kx * d.dx;
      const T* x = plane + (y * d.width + left) * W;
      const auto weights = fold.tap(ky * d.kw + kx);
      if (rowOutside) {
        AGLOW_UNROLL for (int r = 0; r < R; ++r) held[r] = fold.fold(held[r], fold.load(fold.outside()), weights);
        continue;
      }
      AGLOW_UNROLL for (int r = 0; r < R; ++r) {
        const T* at = x + r * d.sx * W;
        if (r < d.leftOutside || r >= R - d.rightOutside) {
          const int64_t position = left + r * d.sx;
          at = position >= 0 && position < d.width ? at : fold.outside();
        }
        held[r] = fold.fold(held[r], fold.load(at), weights);
      }
    }
  }
  // Small windows: from registers. Others through memory, so that what is fused with a result appears once in the code
  // and not R times.
  if (d.kh * d.kw * d.members <= 9) {
    AGLOW_UNROLL for (int r = 0; r < R; ++r) out(fold.finish(d, held[r], row, column + r), column + r);
    return;
  }
  V results[R];
  AGLOW_UNROLL for (int r = 0; r < R; ++r) results[r] = held[r];
  AGLOW_ROLLED for (int r = 0; r < R; ++r) out(fold.finish(d, results[r], row, column + r), column + r);
}

template <int W, int R, class T, class MakeFold>
AGLOW_INLINE int32_t foldPlanes(const PlaneDesc& d, void* const* p, int64_t begin, int64_t end,
                                Epilogue<W, T>* epilogue, MakeFold makeFold) {
  const int64_t allTiles = d.outHeight * d.tiles;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t plane = unit / d.tileGroups, group = unit % d.tileGroups;
    const int64_t image = plane / d.blocks, block = plane % d.blocks;
    const auto fold = makeFold(block);
    const auto* x = static_cast<const typename decltype(fold)::Element*>(p[1]) + plane * d.height * d.width * W;
    for (int64_t t = group * allTiles / d.tileGroups; t < (group + 1) * allTiles / d.tileGroups; ++t) {
      const int64_t row = t / d.tiles, inRow = t % d.tiles;
      const auto out = [&](Lanes<T, W> value, int64_t column) __attribute__((always_inline)) {
        epilogue(value, p, image, block, row * d.outWidth + column, 0, W);
      };
      const int64_t column = inRow * R - larger(inRow - d.tall, 0);
      if (d.tall == d.tiles || inRow < d.tall) {
        foldTile<W, R>(d, fold, x, row, column, out);
      } else if constexpr (R > 1) {
        foldTile<W, R - 1>(d, fold, x, row, column, out);
      }
    }
  }
  return kDone;
}

template <int W, int R>
AGLOW_INLINE int32_t depthwise(const PlaneDesc& d, void* const* p, int64_t begin, int64_t end, Epilogue<W>* epilogue) {
  const float* filter = static_cast<const float*>(p[2]);
  return foldPlanes<W, R>(d, p, begin, end, epilogue, [&](int64_t block) __attribute__((always_inline)) {
    return Weighted<W>{filter + block * d.kh * d.kw * W};
  });
}

template <int W, int R, int M>
AGLOW_INLINE int32_t ofMembers(const PlaneDesc& d, void* const* p, int64_t begin, int64_t end, Epilogue<W>* epilogue) {
  const float* filter = static_cast<const float*>(p[2]);
  return foldPlanes<W, R>(d, p, begin, end, epilogue, [&](int64_t block) __attribute__((always_inline)) {
    return Grouped<W, M>{filter + block * d.kh * d.kw * M * W};
  });
}

// Groups of 2, 4, 8 or 16, and no more than there are lanes.
template <int W, int R, int M = W>
AGLOW_INLINE int32_t grouped(const PlaneDesc& d, void* const* p, int64_t begin, int64_t end, Epilogue<W>* epilogue) {
  if constexpr (M > 2)
    if (d.members < M) return grouped<W, R, M / 2>(d, p, begin, end, epilogue);
  return ofMembers<W, R, M>(d, p, begin, end, epilogue);
}

template <int W, int R>
AGLOW_INLINE int32_t byteDepthwise(const PlaneDesc& d, void* const* p, int64_t begin, int64_t end,
                                   Epilogue<W, int32_t>* epilogue, Dot<W>* dot) {
  const int8_t* filter = static_cast<const int8_t*>(p[2]);
  uint8_t outside[W];
  AGLOW_UNROLL for (uint8_t& element : outside) element = static_cast<uint8_t>(d.outside);
  const bool counts = d.outside != 0 && (d.py > 0 || d.bottom > 0);
  return foldPlanes<W, R>(d, p, begin, end, epilogue, [&](int64_t block) __attribute__((always_inline)) {
    return ByteWeighted<W>{filter + block * d.kh * d.kw * W, outside, counts, dot};
  });
}

template <int W, int R, class Folding>
AGLOW_INLINE int32_t pool(const PlaneDesc& d, void* const* p, int64_t begin, int64_t end,
                          Epilogue<W, typename Folding::Element>* epilogue) {
  return foldPlanes<W, R>(d, p, begin, end, epilogue, [](int64_t) __attribute__((always_inline)) { return Folding{}; });
}

}  // namespace aglow::cpu

#define AGLOW_PLANES(NAME, T, W, R, ...)                                                                       \
  extern "C" int32_t aglow_##NAME##_r##R##_w##W(const aglow::cpu::PlaneDesc* d, void* const* p, int64_t begin, \
                                                int64_t end, aglow::cpu::Epilogue<W, T>* epilogue) {           \
    return aglow::cpu::__VA_ARGS__(*d, p, begin, end, epilogue);                                               \
  }
#define AGLOW_BYTE_PLANES(W, R)                                                                                      \
  extern "C" int32_t aglow_byte_depthwise_r##R##_w##W(const aglow::cpu::PlaneDesc* d, void* const* p, int64_t begin, \
                                                      int64_t end, aglow::cpu::Epilogue<W, int32_t>* epilogue,       \
                                                      aglow::cpu::Dot<W>* dot) {                                     \
    return aglow::cpu::byteDepthwise<W, R>(*d, p, begin, end, epilogue, dot);                                        \
  }
#define AGLOW_PLANES_ROWS(W, R)                                                           \
  AGLOW_PLANES(depthwise, float, W, R, depthwise<W, R>)                                   \
  AGLOW_BYTE_PLANES(W, R)                                                                 \
  AGLOW_PLANES(grouped, float, W, R, grouped<W, R>)                                       \
  AGLOW_PLANES(max_planes, float, W, R, pool<W, R, aglow::cpu::Largest<float, W>>)        \
  AGLOW_PLANES(max_planes_u8, uint8_t, W, R, pool<W, R, aglow::cpu::Largest<uint8_t, W>>) \
  AGLOW_PLANES(max_planes_i8, int8_t, W, R, pool<W, R, aglow::cpu::Largest<int8_t, W>>)   \
  AGLOW_PLANES(mean_planes, float, W, R, pool<W, R, aglow::cpu::Mean<W>>)
#define AGLOW_PLANES_WIDTHS(R) AGLOW_PLANES_ROWS(4, R) AGLOW_PLANES_ROWS(8, R) AGLOW_PLANES_ROWS(16, R)

AGLOW_PLANES_WIDTHS(1)
AGLOW_PLANES_WIDTHS(2)
AGLOW_PLANES_WIDTHS(3)
AGLOW_PLANES_WIDTHS(4)
AGLOW_PLANES_WIDTHS(5)
AGLOW_PLANES_WIDTHS(6)
AGLOW_PLANES_WIDTHS(7)
AGLOW_PLANES_WIDTHS(8)
