// Rows by the rows of a matrix that is read as it lies: weights that belong to someone else, and are not copied.
#include "backends/cpu/kernels/gemm/dots.h"
#include "backends/cpu/kernels/gemm/rows_desc.h"
#include "backends/cpu/kernels/math/lanes.h"

namespace aglow::cpu {

// M rows of a by W rows of b: a part of the depth after the other, so that the part of a stays in the first-level
// cache.
template <int W, int M>
AGLOW_INLINE void rowsTile(const RowsDesc& d, const float* a, const float* b, int64_t count, Lanes<float, W>* results) {
  constexpr int N = 4, kParts = W / N;
  using Sums = Lanes<float, N>;
  using Wide = Lanes<double, N>;
  Sums sums[kParts][M];
  Wide totals[kParts][M];
  AGLOW_ROLLED for (int64_t from = 0; from == 0 || from < d.depth; from += d.span) {
    const int64_t depth = d.span < d.depth - from ? d.span : d.depth - from;
    const float* left[M];
    AGLOW_UNROLL for (int m = 0; m < M; ++m) left[m] = a + m * d.aRow + from;
    AGLOW_ROLLED for (int part = 0; part < kParts; ++part) {
      const float* right[N];
      AGLOW_UNROLL for (int n = 0; n < N; ++n) {
        const int64_t column = part * N + n;
        right[n] = b + (column < count ? column : count - 1) * d.depth + from;
      }
      dotTile<W, M, N>(left, right, depth, sums[part]);
      if (d.span >= d.depth) continue;
      // Sums of f32 stay short.
      AGLOW_UNROLL for (int m = 0; m < M; ++m) {
        const Wide more = convertLanes<Wide>(sums[part][m]);
        totals[part][m] = from == 0 ? more : totals[part][m] + more;
        sums[part][m] = convertLanes<Sums>(totals[part][m]);
      }
    }
  }
  AGLOW_UNROLL for (int part = 0; part < kParts; ++part) AGLOW_UNROLL for (int m = 0; m < M; ++m)
      AGLOW_UNROLL for (int n = 0; n < N; ++n) results[m][part * N + n] = sums[part][m][n];
}

// W rows of b meet the unit's tiles of a before the next, which are asked for meanwhile, a share with each tile.
template <int W, int H>
AGLOW_INLINE void rowsUnit(const RowsDesc& d, void* const* p, int64_t unit, Epilogue<W>* epilogue) {
  constexpr int64_t kLineFloats = 16;
  const auto fewer = [](int64_t x, int64_t y) { return x < y ? x : y; };
  const int64_t groups = (d.columns + d.unitColumns - 1) / d.unitColumns;
  const int64_t first = unit / groups * d.unitTiles, last = fewer(first + d.unitTiles, d.tiles);
  const int64_t begin = unit % groups * d.unitColumns, end = fewer(begin + d.unitColumns, d.columns);
  const float* a = static_cast<const float*>(p[d.a]);
  const float* b = static_cast<const float*>(p[2]);
  const int64_t share = (W * d.depth + d.unitTiles - 1) / d.unitTiles;
  AGLOW_ROLLED for (int64_t column = begin; column < end; column += W) {
    const int64_t count = fewer(W, end - column);
    const float *right = b + column * d.depth, *next = right + W * d.depth;
    const auto rows = [&](auto m, int64_t row) __attribute__((always_inline)) {
      constexpr int M = decltype(m)::value;
      Lanes<float, W> results[M];
      rowsTile<W, M>(d, a + row * d.aRow, right, count, results);
      AGLOW_UNROLL for (int i = 0; i < M; ++i) epilogue(results[i], p, 0, 0, row + i, column, count);
    };
    AGLOW_ROLLED for (int64_t tile = first; tile < last; ++tile) {
      if (d.unitTiles > 1) {
        for (int64_t i = 0; i < share; i += kLineFloats) __builtin_prefetch(next + i, 0, 3);
        next += share;
      }
      if (tile < d.tall)
        rows(Number<H>{}, tile * H);
      else if constexpr (H > 1)
        rows(Number<H - 1>{}, tile * H - (tile - d.tall));
    }
  }
}

template <int W, int H>
AGLOW_INLINE int32_t rowsByRows(const RowsDesc& d, void* const* p, int64_t begin, int64_t end, Epilogue<W>* epilogue) {
  for (int64_t unit = begin; unit < end; ++unit) rowsUnit<W, H>(d, p, unit, epilogue);
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_ROWS(H, W)                                                                                               \
  extern "C" int32_t aglow_rows_r##H##_w##W(const aglow::cpu::RowsDesc* d, void* const* p, int64_t begin, int64_t end, \
                                            aglow::cpu::Epilogue<W>* epilogue) {                                       \
    return aglow::cpu::rowsByRows<W, H>(*d, p, begin, end, epilogue);                                                  \
  }
// As high as registers hold the sums, and a vector of each row.
#define AGLOW_LOW_ROWS(W) \
  AGLOW_ROWS(1, W)        \
  AGLOW_ROWS(2, W)        \
  AGLOW_ROWS(3, W)
AGLOW_LOW_ROWS(4)
AGLOW_LOW_ROWS(8)
AGLOW_LOW_ROWS(16)
AGLOW_ROWS(4, 16)
AGLOW_ROWS(5, 16)
AGLOW_ROWS(6, 16)
