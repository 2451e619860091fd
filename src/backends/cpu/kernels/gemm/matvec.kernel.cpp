// Few rows by a packed matrix, which is read once and as fast as memory allows; and copies that put matrices in order
// at run time.
#include "backends/cpu/kernels/gemm/matvec_desc.h"
#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

template <int W, int M>
AGLOW_INLINE int32_t matVec(const MatVecDesc& d, void* const* p, int64_t begin, int64_t end, Epilogue<W>* epilogue) {
  using V = Lanes<float, W>;
  using Wide = Lanes<double, W>;
  constexpr int S = matVecPanels(M), C = 2;
  const float* a = static_cast<const float*>(p[1]);
  const float* b = static_cast<const float*>(p[2]);
  for (int64_t unit = begin; unit < end; ++unit) {
    const float* panel[S];
    AGLOW_UNROLL for (int s = 0; s < S; ++s) panel[s] = b + smaller(unit * S + s, d.panels - 1) * d.depth * C * W;
    V results[M * S * C];
    Wide totals[M * S * C];
    // Sums of f32 stay short: what a span gives is added to totals in f64.
    AGLOW_ROLLED for (int64_t from = 0; from == 0 || from < d.depth; from += d.span) {
      const int64_t to = smaller(from + d.span, d.depth);
      V sums[M][S][C];
      AGLOW_UNROLL for (int m = 0; m < M; ++m) AGLOW_UNROLL for (int s = 0; s < S; ++s)
          AGLOW_UNROLL for (int c = 0; c < C; ++c) sums[m][s][c] = V{};
      AGLOW_ROLLED for (int64_t k = from; k < to; ++k) {
        V values[M];
        AGLOW_UNROLL for (int m = 0; m < M; ++m) values[m] = splat<float, W>(a[m * d.depth + k]);
        AGLOW_UNROLL for (int s = 0; s < S; ++s) AGLOW_UNROLL for (int c = 0; c < C; ++c) {
          const float* w = panel[s] + (k * C + c) * W;
          if (d.ahead != 0 && c * W % kLine == 0) __builtin_prefetch(w + d.ahead);
          const V weights = loadLanes<V>(w);
          AGLOW_UNROLL for (int m = 0; m < M; ++m) sums[m][s][c] = values[m] * weights + sums[m][s][c];
        }
      }
      AGLOW_UNROLL for (int m = 0; m < M; ++m) AGLOW_UNROLL for (int s = 0; s < S; ++s)
          AGLOW_UNROLL for (int c = 0; c < C; ++c) {
        const int at = (m * S + s) * C + c;
        if (d.span >= d.depth) {
          results[at] = sums[m][s][c];
          continue;
        }
        const Wide more = convertLanes<Wide>(sums[m][s][c]);
        totals[at] = from == 0 ? more : totals[at] + more;
        if (to == d.depth) results[at] = convertLanes<V>(totals[at]);
      }
    }
    AGLOW_ROLLED for (int i = 0; i < M * S * C; ++i) {
      const int64_t vector = unit * S * C + i % (S * C);
      if (vector < d.vectors)
        epilogue(results[i], p, 0, 0, i / (S * C), vector * W, smaller(W, d.columns - vector * W));
    }
  }
  return kDone;
}

template <int W>
AGLOW_INLINE int32_t packPanels(const PackDesc& d, void* const* p, int64_t begin, int64_t end) {
  using V = Lanes<float, W>;
  constexpr int64_t kPanel = 2 * W;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t column = unit % d.panels * kPanel, count = smaller(kPanel, d.columns - column);
    const float* from = static_cast<const float*>(p[d.from]) + unit / d.panels * d.depth * d.columns + column;
    float* to = static_cast<float*>(p[d.to]) + d.toOffset + unit * d.depth * kPanel;
    for (int64_t k = 0; k < d.depth; ++k, from += d.columns, to += kPanel) {
      if (count == kPanel) {
        storeLanes(to, loadLanes<V>(from));
        storeLanes(to + W, loadLanes<V>(from + W));
      } else {
        for (int64_t i = 0; i < kPanel; ++i) to[i] = i < count ? from[i] : 0;
      }
    }
  }
  return kDone;
}

template <int W>
AGLOW_INLINE int32_t spreadRows(const SpreadDesc& d, void* const* p, int64_t begin, int64_t end) {
  using V = Lanes<float, W>;
  const float* from = static_cast<const float*>(p[d.from]);
  float* to = static_cast<float*>(p[d.to]) + d.toOffset;
  for (int64_t row = begin * d.unitRows; row < smaller(end * d.unitRows, d.rows); ++row) {
    int64_t i = 0;
    for (; i + W <= d.width; i += W) storeLanes(to + row * d.distance + i, loadLanes<V>(from + row * d.width + i));
    for (; i < d.width; ++i) to[row * d.distance + i] = from[row * d.width + i];
  }
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_MATVEC(W, M)                                                                                    \
  extern "C" int32_t aglow_matvec_m##M##_w##W(const aglow::cpu::MatVecDesc* d, void* const* p, int64_t begin, \
                                              int64_t end, aglow::cpu::Epilogue<W>* epilogue) {               \
    return aglow::cpu::matVec<W, M>(*d, p, begin, end, epilogue);                                             \
  }
#define AGLOW_MATRICES(W)                                                                                   \
  AGLOW_MATVEC(W, 1)                                                                                        \
  AGLOW_MATVEC(W, 2)                                                                                        \
  AGLOW_MATVEC(W, 3)                                                                                        \
  AGLOW_MATVEC(W, 4)                                                                                        \
  extern "C" int32_t aglow_pack_panels_w##W(const aglow::cpu::PackDesc* d, void* const* p, int64_t begin,   \
                                            int64_t end) {                                                  \
    return aglow::cpu::packPanels<W>(*d, p, begin, end);                                                    \
  }                                                                                                         \
  extern "C" int32_t aglow_spread_rows_w##W(const aglow::cpu::SpreadDesc* d, void* const* p, int64_t begin, \
                                            int64_t end) {                                                  \
    return aglow::cpu::spreadRows<W>(*d, p, begin, end);                                                    \
  }

AGLOW_MATRICES(4)
AGLOW_MATRICES(8)
AGLOW_MATRICES(16)
