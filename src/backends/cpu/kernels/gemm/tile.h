// The register-tile product: R columns of a row of results by C vectors of output channels stay in registers while the
// channels and taps run past. It serves products of matrices, convolutions and the products of Winograd's method.
// For kernels only.
#pragma once

#include "backends/cpu/kernels/gemm/tile_desc.h"
#include "backends/cpu/kernels/loops.h"
#include "backends/cpu/kernels/math/lanes.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

// What columns outside of the input read: at most this many elements of a block that follow each other.
inline constexpr int kBlock = 16;
alignas(64) inline constexpr float kZeros[kBlock] = {};

// How tiles of f32 are multiplied.
template <int W>
struct FloatProducts {
  using Element = float;  // of the operands
  using Sum = float;
  using Weights = Lanes<Element, W>;
  using Vector = Lanes<Sum, W>;

  const float* outside = kZeros;

  // Whether rows outside of the input add to a sum.
  static AGLOW_INLINE bool countsOutside() { return false; }
  AGLOW_INLINE Vector add(Element x, Vector weights, Vector sum) const { return splat<float, W>(x) * weights + sum; }
};

// An element is four bytes of neighbouring channels; sums are exact.
template <int W>
struct ByteProducts {
  using Element = int32_t;
  using Sum = int32_t;
  using Weights = Lanes<Element, W>;
  using Vector = Lanes<Sum, W>;

  const int32_t* outside;
  bool outsideCounts;
  Dot<W>* dot;

  AGLOW_INLINE bool countsOutside() const { return outsideCounts; }
  AGLOW_INLINE Vector add(Element x, Vector weights, Vector sum) const {
    return dot(sum, splat<int32_t, W>(x), weights);
  }
};

// An element is two bf16 of neighbouring channels.
template <int W>
struct PairProducts {
  using Element = int32_t;
  using Sum = float;
  using Weights = Lanes<Element, W>;
  using Vector = Lanes<Sum, W>;

  PairDot<W>* dot;
  const int32_t* outside = reinterpret_cast<const int32_t*>(kZeros);

  static AGLOW_INLINE bool countsOutside() { return false; }
  AGLOW_INLINE Vector add(Element x, Weights weights, Vector sum) const {
    return dot(sum, splat<int32_t, W>(x), weights);
  }
};

// Two rows and two columns at a time, two elements deep: each is four bytes or two bf16.
template <class S>
struct BlockProducts {
  using Element = int32_t;
  using Sum = S;
  using Weights = Lanes<Element, 4>;
  using Vector = Lanes<Sum, 4>;
  static constexpr bool kInBlocks = true;

  BlockDot<S>* dot;
  const int32_t* outside = reinterpret_cast<const int32_t*>(kZeros);
  bool outsideCounts = false;

  AGLOW_INLINE bool countsOutside() const { return outsideCounts; }
};

template <class Products>
concept InBlocks = Products::kInBlocks;

inline constexpr int64_t kLine = 16;  // floats in a line of the cache

AGLOW_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
AGLOW_INLINE int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
AGLOW_INLINE int64_t roundedUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T = float>
AGLOW_INLINE T* placeOf(void* const* p, const TilePlace& place) {
  return static_cast<T*>(p[place.operand]) + place.offset;
}

// The taps of a window axis that lie inside of the input.
struct Taps {
  int64_t begin, end;
};

AGLOW_INLINE Taps tapsInside(int64_t first, int64_t dilation, int64_t taps, int64_t extent) {
  const int64_t begin = first >= 0 ? 0 : roundedUp(-first, dilation);
  const int64_t end = first >= extent ? 0 : smaller(taps, roundedUp(extent - first, dilation));
  return {begin, end};
}

// One tile: where it stands, what it reads.
template <class T>
struct TilePart {
  const T* x;             // of the image and group
  const T* w;             // of the image and panel
  const T* rowStarts;     // of the first result's row, or null
  T* partial;             // totals of R x C vectors
  int64_t row, column;    // of the first result
  int64_t block, blocks;  // of the pass
  bool first, last;       // pass
  int64_t ahead;          // where the tile's share of the next panel lies, seen from its own panel
  bool prefetches;
};

// What sums begin with: zero, unless they are the first ones of a product that has something else.
template <int W, int R, int C, class Products>
AGLOW_INLINE void startSums(const TileDesc& d, const TilePart<typename Products::Element>& part, bool first,
                            typename Products::Vector (&sums)[R][C]) {
  using Sum = typename Products::Sum;
  using V = typename Products::Vector;
  AGLOW_UNROLL for (int c = 0; c < C; ++c) {
    V start{};
    if (d.starts && first) start = loadLanes<V>(part.w + d.kh * d.kw * d.channels * d.wRow + c * W);
    AGLOW_UNROLL for (int r = 0; r < R; ++r) {
      sums[r][c] = start;
      if (d.hasRowStarts && first) sums[r][c] += splat<Sum, W>(static_cast<Sum>(part.rowStarts[r]));
    }
  }
}

// Where the R columns of a tile read from `x` on, and how far it is from one channel to the next; those outside of the
// input read what stands for them.
template <int R, class Products>
AGLOW_INLINE void columnsAt(const Products& products, const TileDesc& d, const typename Products::Element* x,
                            int64_t left, const typename Products::Element* (&at)[R], int64_t (&channel)[R]) {
  AGLOW_UNROLL for (int r = 0; r < R; ++r) {
    at[r] = x + r * d.sx * d.xColumn;
    channel[r] = d.xChannel;
    if (r < d.left || r >= R - d.right) {
      const int64_t column = left + r * d.sx;
      const bool inside = column >= 0 && column < d.width;
      at[r] = inside ? at[r] : products.outside;
      if (d.xChannel != 1) channel[r] = inside ? d.xChannel : 0;
    }
  }
}

// The same as below with products of blocks. Vectors of weights, which hold four columns of one element each, are
// zipped to two columns of two elements; results are put back into rows at the end. A last row or element on its own
// has none beside it.
template <int W, int R, int C, InBlocks Products>
AGLOW_INLINE void multiplyBlocks(const Products& products, const TileDesc& d,
                                 const TilePart<typename Products::Element>& part, int64_t begin, int64_t end,
                                 typename Products::Vector (&sums)[R][C]) {
  using T = typename Products::Element;
  using V = typename Products::Vector;
  using Words = typename Products::Weights;
  constexpr int kPairs = (R + 1) / 2;
  static_assert(W == 4);
  startSums<W, R, C, Products>(d, part, begin == 0, sums);
  V blocks[kPairs][C][2];
  AGLOW_UNROLL for (int r = 0; r < kPairs; ++r) AGLOW_UNROLL for (int c = 0; c < C; ++c) blocks[r][c][0] =
      blocks[r][c][1] = V{};
  const int64_t top = part.row * d.sy - d.py;
  const int64_t start = part.column * d.sx - d.px;
  const bool everyRow = products.countsOutside();
  const Taps rows = everyRow ? Taps{0, d.kh} : tapsInside(top, d.dy, d.kh, d.height);
  AGLOW_ROLLED for (int64_t b = begin; b < end; ++b) {
    const int64_t count = smaller(d.block, d.channels - b * d.block);
    AGLOW_ROLLED for (int64_t ky = rows.begin; ky < rows.end; ++ky) {
      AGLOW_ROLLED for (int64_t kx = 0; kx < d.kw; ++kx) {
        const int64_t left = start + kx * d.dx, y = top + ky * d.dy;
        const T* x = part.x + b * d.xBlock + y * d.xRow + left * d.xColumn;
        const T* w = part.w + ((ky * d.kw + kx) * d.channels + b * d.block) * d.wRow;
        const T* at[R];
        int64_t channel[R];
        columnsAt<R>(products, d, x, left, at, channel);
        if (everyRow && (y < 0 || y >= d.height)) AGLOW_UNROLL for (int r = 0; r < R; ++r) {
            at[r] = products.outside;
            channel[r] = 0;
          }
        const auto step = [&](int64_t i, bool two) __attribute__((always_inline)) {
          Words columns[C][2];
          AGLOW_UNROLL for (int c = 0; c < C; ++c) {
            const Words first = loadLanes<Words>(w + i * d.wRow + c * W),
                        second = two ? loadLanes<Words>(w + (i + 1) * d.wRow + c * W) : Words{};
            columns[c][0] = zip<0>(first, second, LanesUpTo<W>{});
            columns[c][1] = zip<W / 2>(first, second, LanesUpTo<W>{});
          }
          AGLOW_UNROLL for (int pair = 0; pair < kPairs; ++pair) {
            Words values{};
            AGLOW_UNROLL for (int r = 2 * pair; r < 2 * pair + 2 && r < R; ++r) {
              values[r % 2 * 2] = loadLanes<T>(at[r] + i * channel[r]);
              if (two) values[r % 2 * 2 + 1] = loadLanes<T>(at[r] + (i + 1) * channel[r]);
            }
            AGLOW_UNROLL for (int c = 0; c < C; ++c) AGLOW_UNROLL for (int half = 0; half < 2; ++half)
                blocks[pair][c][half] = products.dot(blocks[pair][c][half], values, columns[c][half]);
          }
        };
        int64_t i = 0;
        AGLOW_ROLLED for (; i + 2 <= count; i += 2) step(i, true);
        if (i < count) step(i, false);
      }
    }
  }
  AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < C; ++c) {
    const V low = blocks[r / 2][c][0], high = blocks[r / 2][c][1];
    sums[r][c] +=
        r % 2 == 0 ? __builtin_shufflevector(low, high, 0, 1, 4, 5) : __builtin_shufflevector(low, high, 2, 3, 6, 7);
  }
}

// The blocks of channels from `begin` to `end`, multiplied and summed up.
template <int W, int R, int C, class Products>
AGLOW_INLINE void multiplyBlocks(const Products& products, const TileDesc& d,
                                 const TilePart<typename Products::Element>& part, int64_t begin, int64_t end,
                                 typename Products::Vector (&sums)[R][C]) {
  using T = typename Products::Element;
  startSums<W, R, C, Products>(d, part, begin == 0, sums);
  const int64_t top = part.row * d.sy - d.py;
  const int64_t start = part.column * d.sx - d.px;
  const bool everyRow = products.countsOutside();
  const Taps rows = everyRow ? Taps{0, d.kh} : tapsInside(top, d.dy, d.kh, d.height);
  AGLOW_ROLLED for (int64_t b = begin; b < end; ++b) {
    const int64_t count = smaller(d.block, d.channels - b * d.block);
    AGLOW_ROLLED for (int64_t ky = rows.begin; ky < rows.end; ++ky) {
      AGLOW_ROLLED for (int64_t kx = 0; kx < d.kw; ++kx) {
        const int64_t left = start + kx * d.dx, y = top + ky * d.dy;
        const T* x = part.x + b * d.xBlock + y * d.xRow + left * d.xColumn;
        const T* w = part.w + ((ky * d.kw + kx) * d.channels + b * d.block) * d.wRow;
        if (everyRow && (y < 0 || y >= d.height)) {
          AGLOW_ROLLED for (int64_t i = 0; i < count; ++i, w += d.wRow) AGLOW_UNROLL for (int c = 0; c < C; ++c) {
            const auto weights = loadLanes<typename Products::Weights>(w + c * W);
            AGLOW_UNROLL for (int r = 0; r < R; ++r) sums[r][c] =
                products.add(products.outside[0], weights, sums[r][c]);
          }
          continue;
        }
        const T* at[R];
        int64_t channel[R];  // distance from one to the next
        columnsAt<R>(products, d, x, left, at, channel);
        if (part.prefetches)
          for (int64_t line = 0; line < d.prefetch; ++line) __builtin_prefetch(w + part.ahead + line * kLine, 0, 2);
        AGLOW_ROLLED for (int64_t i = 0; i < count; ++i, w += d.wRow) {
          typename Products::Weights weights[C];
          AGLOW_UNROLL for (int c = 0; c < C; ++c) weights[c] = loadLanes<typename Products::Weights>(w + c * W);
          AGLOW_UNROLL for (int r = 0; r < R; ++r) {
            T value;
            __builtin_memcpy(&value, at[r] + i * channel[r], sizeof(T));
            AGLOW_UNROLL for (int c = 0; c < C; ++c) sums[r][c] = products.add(value, weights[c], sums[r][c]);
          }
        }
      }
    }
  }
}

// Adds the sums of a span to totals of type T; the last span turns them into results.
template <class T, int W, class V, int R, int C>
AGLOW_INLINE void addToTotals(void* totals, bool first, bool last, V (&sums)[R][C]) {
  using Total = Lanes<T, W>;
  AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < C; ++c) {
    T* at = static_cast<T*>(totals) + (r * C + c) * W;
    Total total = convertLanes<Total>(sums[r][c]);
    if (!first) total += loadLanes<Total>(at);
    if (last)
      sums[r][c] = convertLanes<V>(total);
    else
      storeLanes(at, total);
  }
}

// Calls out(r, c, sum) for all of the tile's results once the last pass is done.
template <int W, int R, int C, class Products, class Out>
AGLOW_INLINE void computeTile(const Products& products, const TileDesc& d,
                              const TilePart<typename Products::Element>& part, Out out) {
  using V = typename Products::Vector;
  V sums[R][C];
  Lanes<double, W> local[R][C];
  void* totals = d.unitPartials == 0 ? static_cast<void*>(local) : part.partial;
  const int64_t end = part.block + part.blocks;
  const bool single = part.first && part.last && part.blocks <= d.spanBlocks;
  AGLOW_ROLLED for (int64_t b = part.block; b == part.block || b < end; b += d.spanBlocks) {
    multiplyBlocks<W, R, C>(products, d, part, b, smaller(b + d.spanBlocks, end), sums);
    if (single) break;
    const bool first = part.first && b == part.block, last = part.last && b + d.spanBlocks >= end;
    if (d.wide)
      addToTotals<double, W>(totals, first, last, sums);
    else
      addToTotals<typename Products::Sum, W>(totals, first, last, sums);
  }
  if (!part.last) return;
  // Mostly through memory, so that what is fused with a result appears once in the code and not R times.
  if (d.direct) {
    AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < C; ++c) out(r, c, sums[r][c]);
    return;
  }
  V results[R][C];
  AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < C; ++c) results[r][c] = sums[r][c];
  AGLOW_ROLLED for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < C; ++c) out(r, c, results[r][c]);
}

// Calls out(value, image, vector, row, column) for every vector of the results of the units begin to end.
template <int W, int R, class Products, class T, class Out>
AGLOW_INLINE void computeTiles(const Products& products, const TileDesc& d, const T* x, const T* w, T* partial,
                               const T* rowStarts, int64_t begin, int64_t end, Out out) {
  const int64_t allTiles = d.outHeight * d.tiles;
  const int64_t blocks = roundedUp(d.channels, d.block);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t panelGroup = unit % d.panelGroups, tileGroup = unit / d.panelGroups % d.tileGroups;
    const int64_t image = unit / (d.panelGroups * d.tileGroups);
    const int64_t i2 = image % d.images[2], i1 = image / d.images[2] % d.images[1],
                  i0 = image / (d.images[2] * d.images[1]);
    const int64_t xFirst = i0 * d.xImage[0] + i1 * d.xImage[1] + i2 * d.xImage[2];
    const T* xImage = x + xFirst;
    const T* wImage = w + i0 * d.wImage[0] + i1 * d.wImage[1] + i2 * d.wImage[2];
    const int64_t tile0 = tileGroup * allTiles / d.tileGroups,
                  tiles = (tileGroup + 1) * allTiles / d.tileGroups - tile0;
    const int64_t panel0 = panelGroup * d.panels / d.panelGroups,
                  panels = (panelGroup + 1) * d.panels / d.panelGroups - panel0;
    // Sums over nothing need a pass too.
    for (int64_t block = 0; block == 0 || block < blocks; block += d.passBlocks) {
      for (int64_t i = 0; i < tiles * panels; ++i) {
        const int64_t t = i % tiles, panel = panel0 + i / tiles;
        const int64_t row = (tile0 + t) / d.tiles, inRow = (tile0 + t) % d.tiles;
        const int64_t column = inRow * R - larger(inRow - d.tall, 0);
        const TilePart<T> part{.x = xImage + panel / d.panelsPerGroup * d.xGroup,
                               .w = wImage + panel * d.wPanel,
                               .rowStarts = d.hasRowStarts ? rowStarts + xFirst / d.xColumn + column : nullptr,
                               .partial = d.unitPartials == 0
                                              ? nullptr
                                              : partial + unit * d.unitPartials + i * R * 2 * W * (d.wide ? 2 : 1),
                               .row = row,
                               .column = column,
                               .block = block,
                               .blocks = smaller(d.passBlocks, blocks - block),
                               .first = block == 0,
                               .last = block + d.passBlocks >= blocks,
                               .ahead = d.wPanel + t * d.prefetch * kLine,
                               .prefetches = d.prefetch > 0 && t * d.prefetch < d.prefetchable};
        const auto store = [&](int r, int c, typename Products::Vector value)
                               __attribute__((always_inline)) { out(value, image, panel * 2 + c, row, column + r); };
        // Written twice, so that the compiler sees which bodies are not needed.
        const bool whole = d.vectors % 2 == 0 || panel * 2 + 2 <= d.vectors;
        if (d.tall == d.tiles || inRow < d.tall) {
          if (whole)
            computeTile<W, R, 2>(products, d, part, store);
          else
            computeTile<W, R, 1>(products, d, part, store);
        } else if constexpr (R > 1) {
          if (whole)
            computeTile<W, R - 1, 2>(products, d, part, store);
          else
            computeTile<W, R - 1, 1>(products, d, part, store);
        }
      }
    }
  }
}

// All results of the units begin to end, through the epilogue or to memory.
template <int W, int R, class Products>
AGLOW_INLINE int32_t tileStep(const Products& products, const TileDesc& d, void* const* p, int64_t begin, int64_t end,
                              Epilogue<W, typename Products::Sum>* epilogue) {
  using T = typename Products::Element;
  const auto out = [&](typename Products::Vector value, int64_t image, int64_t vector, int64_t row, int64_t column)
                       __attribute__((always_inline)) {
                         if (d.stored)
                           storeLanes(placeOf<T>(p, d.y) + image * d.yImage + vector * d.yVector + column * W, value);
                         else if (d.matrix)
                           epilogue(value, p, 0, image, column, vector * W, smaller(W, d.columns - vector * W));
                         else
                           epilogue(value, p, image, vector, row * d.outWidth + column, 0, W);
                       };
  computeTiles<W, R>(products, d, placeOf<T>(p, d.x), placeOf<T>(p, d.w), placeOf<T>(p, d.partial),
                     placeOf<T>(p, d.rowStarts), begin, end, out);
  return kDone;
}

}  // namespace aglow::cpu
