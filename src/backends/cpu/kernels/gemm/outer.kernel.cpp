// Sums of outer products: R channels of x by two vectors of g stay in registers while places run past. All tiles of a
// unit meet one part of the places before the next, so that both operands are read from the cache.
#include "backends/cpu/kernels/gemm/outer_desc.h"
#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

// The part of the places that is summed up: rows of all images count through.
struct OuterPart {
  int64_t row, rows, column, columns;
};

// What one result of a tile reads.
struct OuterRow {
  int64_t ky, kx, offset;
};

AGLOW_INLINE OuterRow outerRow(const OuterDesc& d, int64_t index) {
  const int64_t tap = index / d.channels, channel = index % d.channels;
  return {tap / d.kw, tap % d.kw, channel / d.block * d.xBlock + channel % d.block * d.xChannel};
}

template <int W, int R, int C>
AGLOW_INLINE void addOuter(const float* const (&at)[R], const float* g, int64_t gVector,
                           Lanes<float, W> (&sums)[R][C]) {
  Lanes<float, W> weights[C];
  AGLOW_UNROLL for (int c = 0; c < C; ++c) weights[c] = loadLanes<Lanes<float, W>>(g + c * gVector);
  AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < C; ++c) sums[r][c] =
      splat<float, W>(*at[r]) * weights[c] + sums[r][c];
}

// Results of one tap: only places that it sees count.
template <int W, int R, int C>
AGLOW_INLINE void sumNeighbours(const OuterDesc& d, const float* x, const float* g, int64_t first,
                                const OuterPart& part, Lanes<float, W> (&sums)[R][C]) {
  const OuterRow row = outerRow(d, first);
  const int64_t left = row.kx * d.dx - d.px;
  const int64_t begin = larger(part.column, left >= 0 ? 0 : roundedUp(-left, d.sx));
  const int64_t end = smaller(part.column + part.columns, d.width <= left ? 0 : roundedUp(d.width - left, d.sx));
  AGLOW_ROLLED for (int64_t i = part.row; i < part.row + part.rows; ++i) {
    const int64_t image = i / d.rows, y = i % d.rows * d.sy - d.py + row.ky * d.dy;
    if (y < 0 || y >= d.height) continue;
    const float* from = x + image * d.xImage + row.offset + y * d.xRow + (begin * d.sx + left) * d.xColumn;
    const float* with = g + image * d.gImage + i % d.rows * d.gRow + begin * d.gColumn;
    AGLOW_ROLLED for (int64_t column = begin; column < end; ++column) {
      const float* at[R];
      AGLOW_UNROLL for (int r = 0; r < R; ++r) at[r] = from + r * d.xChannel;
      addOuter<W, R, C>(at, with, d.gVector, sums);
      from += d.sx * d.xColumn;
      with += d.gColumn;
    }
  }
}

// Results of several taps: where one sees nothing it reads a zero.
template <int W, int R, int C>
AGLOW_INLINE void sumMixed(const OuterDesc& d, const float* x, const float* g, int64_t first, const OuterPart& part,
                           Lanes<float, W> (&sums)[R][C]) {
  OuterRow rows[R];
  int64_t begin = part.column, end = part.column + part.columns;  // the columns that all taps see
  AGLOW_UNROLL for (int r = 0; r < R; ++r) {
    rows[r] = outerRow(d, smaller(first + r, d.kh * d.kw * d.channels - 1));
    const int64_t left = rows[r].kx * d.dx - d.px;
    begin = larger(begin, left >= 0 ? 0 : roundedUp(-left, d.sx));
    end = smaller(end, d.width <= left ? 0 : roundedUp(d.width - left, d.sx));
  }
  AGLOW_ROLLED for (int64_t i = part.row; i < part.row + part.rows; ++i) {
    const int64_t image = i / d.rows;
    const float* from[R];
    int64_t step[R];
    AGLOW_UNROLL for (int r = 0; r < R; ++r) {
      const int64_t y = i % d.rows * d.sy - d.py + rows[r].ky * d.dy;
      const bool inside = y >= 0 && y < d.height;
      from[r] =
          inside ? x + image * d.xImage + rows[r].offset + y * d.xRow + (rows[r].kx * d.dx - d.px) * d.xColumn : kZeros;
      step[r] = inside ? d.sx * d.xColumn : 0;
    }
    const float* with = g + image * d.gImage + i % d.rows * d.gRow;
    const auto checked = [&](int64_t column) __attribute__((always_inline)) {
      const float* at[R];
      AGLOW_UNROLL for (int r = 0; r < R; ++r) {
        const int64_t place = column * d.sx + rows[r].kx * d.dx - d.px;
        at[r] = place >= 0 && place < d.width ? from[r] + column * step[r] : kZeros;
      }
      addOuter<W, R, C>(at, with + column * d.gColumn, d.gVector, sums);
    };
    int64_t column = part.column;
    AGLOW_ROLLED for (; column < smaller(begin, part.column + part.columns); ++column) checked(column);
    AGLOW_ROLLED for (; column < end; ++column) {
      const float* at[R];
      AGLOW_UNROLL for (int r = 0; r < R; ++r) at[r] = from[r] + column * step[r];
      addOuter<W, R, C>(at, with + column * d.gColumn, d.gVector, sums);
    }
    AGLOW_ROLLED for (; column < part.column + part.columns; ++column) checked(column);
  }
}

// A tile's sums over a part join what its results hold already.
template <int W, int R, int C>
AGLOW_INLINE void outerTile(const OuterDesc& d, const float* x, const float* g, float* y, int64_t tile,
                            const OuterPart& part) {
  using V = Lanes<float, W>;
  V sums[R][C];
  AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < C; ++c) sums[r][c] = V{};
  int64_t first = tile * R, skipped = 0, count = smaller(R, d.kh * d.kw * d.channels - first);
  if (d.mixed) {
    sumMixed<W, R, C>(d, x, g, first, part, sums);
  } else {
    // The last tile of a tap begins where it still has all its channels.
    const int64_t taps = d.kh * d.kw, channel = tile / taps * R;
    count = smaller(R, d.channels - channel);
    skipped = d.padded ? 0 : R - count;
    first = tile % taps * d.channels + channel;
    sumNeighbours<W, R, C>(d, x, g, first - skipped, part, sums);
  }
  const bool begins = part.row == 0 && part.column == 0;
  AGLOW_UNROLL for (int r = 0; r < R; ++r) AGLOW_UNROLL for (int c = 0; c < C; ++c) {
    if (r < skipped || r - skipped >= count) continue;
    float* to = y + (first + r - skipped) * d.yRow + c * W;
    storeLanes(to, begins ? sums[r][c] : loadLanes<V>(to) + sums[r][c]);
  }
}

template <int W, int R>
AGLOW_INLINE int32_t outer(const OuterDesc& d, void* const* p, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t tileGroup = unit % d.tileGroups, panelGroup = unit / d.tileGroups % d.panelGroups;
    const int64_t batch = unit / (d.tileGroups * d.panelGroups);
    const float* x = static_cast<const float*>(p[d.x]) + batch * d.xBatch;
    const int64_t tile0 = tileGroup * d.tiles / d.tileGroups, tile1 = (tileGroup + 1) * d.tiles / d.tileGroups;
    const int64_t panel0 = panelGroup * d.panels / d.panelGroups, panel1 = (panelGroup + 1) * d.panels / d.panelGroups;
    const int64_t rows = d.images * d.rows;
    const auto gOf = [&](int64_t panel) {
      return static_cast<const float*>(p[d.g]) + d.gOffset + batch * d.gBatch + panel * d.gPanel;
    };
    const auto yOf = [&](int64_t panel) { return static_cast<float*>(p[0]) + batch * d.yBatch + panel * d.yPanel; };
    const auto isWhole = [&](int64_t panel) { return d.vectors % 2 == 0 || panel * 2 + 2 <= d.vectors; };
    AGLOW_ROLLED for (int64_t row = 0; row < rows; row += d.partRows)
        AGLOW_ROLLED for (int64_t column = 0; column < d.columns; column += d.partCols) {
      const OuterPart part{row, smaller(d.partRows, rows - row), column, smaller(d.partCols, d.columns - column)};
      AGLOW_ROLLED for (int64_t panel = panel0; panel < panel1; ++panel)
          AGLOW_ROLLED for (int64_t tile = tile0; tile < tile1; ++tile) {
        if (isWhole(panel))
          outerTile<W, R, 2>(d, x, gOf(panel), yOf(panel), tile, part);
        else
          outerTile<W, R, 1>(d, x, gOf(panel), yOf(panel), tile, part);
      }
    }
    if (d.filled == 0 || isWhole(panel1 - 1)) continue;
    const int64_t results = d.kh * d.kw * d.channels;
    for (int64_t i = tileGroup * results / d.tileGroups; i < (tileGroup + 1) * results / d.tileGroups; ++i)
      storeLanes(yOf(panel1 - 1) + i * d.yRow + W, Lanes<float, W>{});
  }
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_OUTER(W, R)                                                                                           \
  extern "C" int32_t aglow_outer_w##W(const aglow::cpu::OuterDesc* d, void* const* p, int64_t begin, int64_t end) { \
    return aglow::cpu::outer<W, R>(*d, p, begin, end);                                                              \
  }
AGLOW_OUTER(4, 4)
AGLOW_OUTER(8, 4)
AGLOW_OUTER(16, 8)
