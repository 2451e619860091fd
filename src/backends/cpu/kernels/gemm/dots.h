// Products of rows with rows: the axis that is summed over lies last in both operands, so nothing is packed. Vectors
// run along that axis, and a tile's sums are added up across lanes at its end. For kernels only.
#pragma once

#include "backends/cpu/kernels/loops.h"
#include "backends/cpu/kernels/vectors.h"

namespace aglow::cpu {

template <int N>
struct Number {
  static constexpr int value = N;
};

// f(Number<count>) for a count from 1 to N.
template <int N, class F>
AGLOW_INLINE void withNumber(int64_t count, F f) {
  if (count == N)
    f(Number<N>{});
  else if constexpr (N > 1)
    withNumber<N - 1>(count, f);
}

template <int W>
AGLOW_INLINE Lanes<float, W> loadSome(const float* from, int64_t count) {
  if (count == W) return loadLanes<Lanes<float, W>>(from);
  Lanes<float, W> value{};
  for (int64_t i = 0; i < count; ++i) value[i] = from[i];
  return value;
}
template <int W>
AGLOW_INLINE void storeSome(float* to, Lanes<float, W> value, int64_t count) {
  if (count == W)
    storeLanes(to, value);
  else
    for (int64_t i = 0; i < count; ++i) to[i] = value[i];
}

template <int First, int W, int... I>
AGLOW_INLINE Lanes<float, sizeof...(I)> lanesFrom(Lanes<float, W> v, LaneList<I...>) {
  return __builtin_shufflevector(v, v, (First + I)...);
}

// Lane n is the sum of the lanes n, n + N, n + 2 N, ...
template <int N, int W>
AGLOW_INLINE Lanes<float, N> foldLanes(Lanes<float, W> v) {
  if constexpr (W == N)
    return v;
  else
    return foldLanes<N, W / 2>(lanesFrom<0, W>(v, LanesUpTo<W / 2>{}) + lanesFrom<W / 2, W>(v, LanesUpTo<W / 2>{}));
}

// Lane n is the sum of all lanes of row n. Two rows become one with their lanes in turn, until one is left.
template <int W, int N, int Count = N>
AGLOW_INLINE Lanes<float, N> sumsOf(Lanes<float, W>* rows) {
  if constexpr (Count == 1) {
    return foldLanes<N, W>(rows[0]);
  } else {
    constexpr int kHalf = Count / 2;
    AGLOW_UNROLL for (int i = 0; i < kHalf; ++i) rows[i] =
        zip<0>(rows[i], rows[i + kHalf], LanesUpTo<W>{}) + zip<W / 2>(rows[i], rows[i + kHalf], LanesUpTo<W>{});
    return sumsOf<W, N, kHalf>(rows);
  }
}

// The last `count` of `depth` elements, in the highest lanes where there are elements enough to fill the others.
template <int W>
AGLOW_INLINE Lanes<float, W> loadRest(const float* row, int64_t depth, int64_t count) {
  using V = Lanes<float, W>;
  if (depth < W) return loadSome<W>(row, count);
  Lanes<int32_t, W> lane;
  AGLOW_UNROLL for (int i = 0; i < W; ++i) lane[i] = i;
  return lane >= static_cast<int32_t>(W - count) ? loadLanes<V>(row + depth - W) : V{};
}

// One row of x by N rows of w, one after the other: so memory is read in its order, which caches serve fastest.
template <int W, int N>
AGLOW_INLINE void dotLines(const float* x, const float* const (&w)[N], int64_t depth, Lanes<float, N>& sums) {
  using V = Lanes<float, W>;
  constexpr int kChains = 4;
  V totals[N];
  AGLOW_UNROLL for (int n = 0; n < N; ++n) {
    V parts[kChains];
    AGLOW_UNROLL for (int i = 0; i < kChains; ++i) parts[i] = V{};
    int64_t k = 0;
    AGLOW_ROLLED for (; k + kChains * W <= depth; k += kChains * W) AGLOW_UNROLL for (int i = 0; i < kChains; ++i)
        parts[i] = loadLanes<V>(x + k + i * W) * loadLanes<V>(w[n] + k + i * W) + parts[i];
    AGLOW_ROLLED for (; k + W <= depth; k += W) parts[0] = loadLanes<V>(x + k) * loadLanes<V>(w[n] + k) + parts[0];
    if (const int64_t rest = depth - k; rest > 0)
      parts[1] = loadRest<W>(x, depth, rest) * loadRest<W>(w[n], depth, rest) + parts[1];
    totals[n] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
  sums = sumsOf<W, N>(totals);
}

// M rows of x by N rows of w: sums[m] has the products with the rows of w.
template <int W, int M, int N>
AGLOW_INLINE void dotTile(const float* const (&x)[M], const float* const (&w)[N], int64_t depth,
                          Lanes<float, N> (&sums)[M]) {
  using V = Lanes<float, W>;
  if constexpr (M == 1) return dotLines<W, N>(x[0], w, depth, sums[0]);
  V parts[M][N];
  AGLOW_UNROLL for (int m = 0; m < M; ++m) AGLOW_UNROLL for (int n = 0; n < N; ++n) parts[m][n] = V{};
  const auto add = [&](auto load) __attribute__((always_inline)) {
    V values[M];
    AGLOW_UNROLL for (int m = 0; m < M; ++m) values[m] = load(x[m]);
    AGLOW_UNROLL for (int n = 0; n < N; ++n) {
      const V weights = load(w[n]);
      AGLOW_UNROLL for (int m = 0; m < M; ++m) parts[m][n] = values[m] * weights + parts[m][n];
    }
  };
  int64_t k = 0;
  AGLOW_ROLLED for (; k + W <= depth; k += W) {
    add([&](const float* row) __attribute__((always_inline)) { return loadLanes<V>(row + k); });
  }
  if (const int64_t rest = depth - k; rest > 0)
    add([&](const float* row) __attribute__((always_inline)) { return loadRest<W>(row, depth, rest); });
  AGLOW_UNROLL for (int m = 0; m < M; ++m) sums[m] = sumsOf<W, N>(parts[m]);
}

// Rows that a tile may have: sums, an operand of each row, and one of the weights must fit into the registers.
template <int W>
inline constexpr int kDotRows = W == 16 ? 4 : 3;

struct DotRows {
  const float* at;
  int64_t rows, step;
};

// Rows of the next tile. Alone, a row is summed up in another order, so a last one is not left alone: what a row gives
// does not depend on how many there are, if there are two.
AGLOW_INLINE int64_t rowsOfTile(int64_t left, int64_t tile) {
  if (left <= tile || tile == 1) return left < tile ? left : tile;
  if (left > tile + 1) return tile;
  return tile == 2 ? 3 : tile - 1;
}

// All rows of x, about `tile` at a time, by the rows of w [w.rows, depth]. Calls out(row, column, sums, count), count
// being less than the lanes only for the last columns. A few rows of w meet all of x before the next, which are asked
// for meanwhile, a share with each tile.
template <int W, class Out>
AGLOW_INLINE void dots(const DotRows& x, int64_t tile, const DotRows& w, int64_t depth, Out out) {
  const auto columns = [&](auto n) __attribute__((always_inline)) {
    constexpr int N = decltype(n)::value;
    const int64_t tiles = (x.rows + tile - 1) / tile, share = (N * w.step + tiles - 1) / tiles;
    AGLOW_ROLLED for (int64_t column = 0; column < w.rows; column += N) {
      const float* right[N];
      AGLOW_UNROLL for (int i = 0; i < N; ++i) right[i] =
          w.at + (column + i < w.rows ? column + i : w.rows - 1) * w.step;
      const int64_t lanes = N < w.rows - column ? N : w.rows - column;
      const auto rows = [&](auto m, int64_t first) __attribute__((always_inline)) {
        constexpr int M = decltype(m)::value;
        const float* left[M];
        AGLOW_UNROLL for (int i = 0; i < M; ++i) left[i] = x.at + (first + i) * x.step;
        Lanes<float, N> sums[M];
        dotTile<W, M, N>(left, right, depth, sums);
        AGLOW_UNROLL for (int r = 0; r < M; ++r) out(first + r, column, sums[r], lanes);
      };
      const float* next = right[0] + N * w.step;
      AGLOW_ROLLED for (int64_t first = 0; first < x.rows;) {
        if (tiles > 1) {
          constexpr int64_t kLineFloats = 16;
          for (int64_t i = 0; i < share; i += kLineFloats) __builtin_prefetch(next + i, 0, 3);
          next += share;
        }
        const int64_t count = rowsOfTile(x.rows - first, tile);
        withNumber<kDotRows<W>>(count, [&](auto m) __attribute__((always_inline)) { rows(m, first); });
        first += count;
      }
    }
  };
  if (tile == 1)
    columns(Number<(W >= 8 ? 8 : 4)>{});
  else
    columns(Number<4>{});
}

}  // namespace aglow::cpu
