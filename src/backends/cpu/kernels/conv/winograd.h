// The transforms of Winograd's method on vectors of channels; ops/winograd.h has them as matrices. For kernels only.
#pragma once

#include "backends/cpu/kernels/conv/winograd_desc.h"
#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

template <int kTile>
struct WinogradLine;

// One line of a tile; both directions are the same.
template <>
struct WinogradLine<2> {
  template <class V>
  static AGLOW_INLINE void input(const V (&d)[4], V (&t)[4]) {
    t[0] = d[0] - d[2];
    t[1] = d[1] + d[2];
    t[2] = d[2] - d[1];
    t[3] = d[1] - d[3];
  }
  template <class V>
  static AGLOW_INLINE void output(const V (&m)[4], V (&y)[2]) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] - m[3];
  }
};

template <>
struct WinogradLine<4> {
  template <class V>
  static AGLOW_INLINE void input(const V (&d)[6], V (&t)[6]) {
    const V even = d[4] - 4.F * d[2], odd = d[3] - 4.F * d[1];
    const V p = d[4] - d[2], q = d[3] - d[1];
    t[0] = 4.F * d[0] + (d[4] - 5.F * d[2]);
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = p + 2.F * q;
    t[4] = p - 2.F * q;
    t[5] = 4.F * d[1] + (d[5] - 5.F * d[3]);
  }
  template <class V>
  static AGLOW_INLINE void output(const V (&m)[6], V (&y)[4]) {
    const V sum = m[1] + m[2], difference = m[1] - m[2], p = m[3] + m[4], q = m[3] - m[4];
    y[0] = m[0] + sum + p;
    y[1] = difference + 2.F * q;
    y[2] = sum + 4.F * p;
    y[3] = difference + 8.F * q + m[5];
  }
};

// Where a tile's results begin.
struct TileSpot {
  int64_t image, row, column;
};

template <int kTile>
AGLOW_INLINE TileSpot spotOf(const WinogradDesc& d, int64_t tile) {
  const int64_t inImage = tile % (d.tilesDown * d.tilesAcross);
  return {tile / (d.tilesDown * d.tilesAcross), inImage / d.tilesAcross * kTile, inImage % d.tilesAcross * kTile};
}

// Tile `tile` of a block of channels to its place in V.
template <int W, int kTile>
AGLOW_INLINE void transformInput(const WinogradDesc& d, const float* x, float* v, int64_t block, int64_t tile,
                                 int64_t inRun) {
  using V = Lanes<float, W>;
  constexpr int E = kTile + 2;
  const TileSpot spot = spotOf<kTile>(d, tile);
  const int64_t top = spot.row - d.py, left = spot.column - d.px;
  const float* plane = x + (spot.image * d.blocks + block) * d.height * d.width * W;
  const float* from = plane + (top * d.width + left) * W;
  int64_t rowDistance = d.width * W;
  V padded[E][E];
  if (top < 0 || left < 0 || top + E > d.height || left + E > d.width) {
    AGLOW_ROLLED for (int64_t i = 0; i < E; ++i) AGLOW_ROLLED for (int64_t j = 0; j < E; ++j) {
      const int64_t y = top + i, z = left + j;
      const bool inside = y >= 0 && y < d.height && z >= 0 && z < d.width;
      padded[i][j] = loadLanes<V>(inside ? plane + (y * d.width + z) * W : kZeros);
    }
    from = reinterpret_cast<const float*>(padded);
    rowDistance = E * W;
  }
  V half[E][E];
  AGLOW_UNROLL for (int j = 0; j < E; ++j) {
    V line[E], done[E];
    AGLOW_UNROLL for (int i = 0; i < E; ++i) line[i] = loadLanes<V>(from + i * rowDistance + j * W);
    WinogradLine<kTile>::input(line, done);
    AGLOW_UNROLL for (int i = 0; i < E; ++i) half[i][j] = done[i];
  }
  float* to = v + (block * d.run + inRun) * W;
  AGLOW_UNROLL for (int i = 0; i < E; ++i) {
    V done[E];
    WinogradLine<kTile>::input(half[i], done);
    AGLOW_UNROLL for (int j = 0; j < E; ++j) storeLanes(to + (i * E + j) * d.vPosition, done[j]);
  }
}

// A tile of M to results, with out(value, image, position in the map).
template <int W, int kTile, class Out>
AGLOW_INLINE void transformOutput(const WinogradDesc& d, const float* m, int64_t vector, int64_t tile, int64_t inRun,
                                  Out out) {
  using V = Lanes<float, W>;
  constexpr int E = kTile + 2;
  const TileSpot spot = spotOf<kTile>(d, tile);
  const float* from = m + (vector * d.run + inRun) * W;
  V half[kTile][E];
  AGLOW_UNROLL for (int j = 0; j < E; ++j) {
    V line[E], done[kTile];
    AGLOW_UNROLL for (int i = 0; i < E; ++i) line[i] = loadLanes<V>(from + (i * E + j) * d.mPosition);
    WinogradLine<kTile>::output(line, done);
    AGLOW_UNROLL for (int i = 0; i < kTile; ++i) half[i][j] = done[i];
  }
  V results[kTile][kTile];
  AGLOW_UNROLL for (int i = 0; i < kTile; ++i) WinogradLine<kTile>::output(half[i], results[i]);
  const int64_t rows = smaller(kTile, d.outHeight - spot.row), columns = smaller(kTile, d.outWidth - spot.column);
  AGLOW_ROLLED for (int64_t i = 0; i < rows; ++i) AGLOW_ROLLED for (int64_t j = 0; j < columns; ++j)
      out(results[i][j], spot.image, (spot.row + i) * d.outWidth + spot.column + j);
}

}  // namespace aglow::cpu
