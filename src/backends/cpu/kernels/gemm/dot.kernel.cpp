// Rows by a vector: the matrix is read once, as it lies, with vectors along its rows.
#include "backends/cpu/kernels/gemm/dots.h"
#include "backends/cpu/kernels/gemm/matvec_desc.h"
#include "backends/cpu/kernels/math/lanes.h"

namespace aglow::cpu {

// W results.
template <int W>
AGLOW_INLINE Lanes<float, W> dotRows(const DotDesc& d, const float* a, const float* b, int64_t row, int64_t last) {
  constexpr int N = W >= 8 ? 8 : 4;
  using Sums = Lanes<float, N>;
  using Wide = Lanes<double, N>;
  Lanes<float, W> results{};
  AGLOW_UNROLL for (int first = 0; first < W; first += N) {
    Wide totals{};
    AGLOW_ROLLED for (int64_t from = 0; from < d.depth; from += d.span) {
      const float* const vector[1] = {b + from};
      const float* rows[N];
      AGLOW_UNROLL for (int n = 0; n < N; ++n) {
        const int64_t at = row + first + n;
        rows[n] = a + (at < last ? at : last - 1) * d.depth + from;
      }
      Sums sums[1];
      dotTile<W, 1, N>(vector, rows, d.span < d.depth - from ? d.span : d.depth - from, sums);
      totals += convertLanes<Wide>(sums[0]);
    }
    const Sums sums = convertLanes<Sums>(totals);
    AGLOW_UNROLL for (int n = 0; n < N; ++n) results[first + n] = sums[n];
  }
  return results;
}

template <int W>
AGLOW_INLINE int32_t dot(const DotDesc& d, void* const* p, int64_t begin, int64_t end, Epilogue<W>* epilogue) {
  const float* a = static_cast<const float*>(p[1]);
  const float* b = static_cast<const float*>(p[2]);
  const auto fewer = [](int64_t x, int64_t y) { return x < y ? x : y; };
  int64_t row = begin * d.unitRows;
  const int64_t last = fewer(end * d.unitRows, d.rows);
  while (row < last) {
    const int64_t vector = row / d.perVector, until = fewer((vector + 1) * d.perVector, last);
    AGLOW_ROLLED for (; row < until; row += W) {
      const Lanes<float, W> results = dotRows<W>(d, a, b + vector * d.depth, row, until);
      epilogue(results, p, 0, 0, 0, row, fewer(W, until - row));
    }
    row = until;
  }
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_DOT(W)                                                                                          \
  extern "C" int32_t aglow_dot_w##W(const aglow::cpu::DotDesc* d, void* const* p, int64_t begin, int64_t end, \
                                    aglow::cpu::Epilogue<W>* epilogue) {                                      \
    return aglow::cpu::dot<W>(*d, p, begin, end, epilogue);                                                   \
  }
AGLOW_DOT(4)
AGLOW_DOT(8)
AGLOW_DOT(16)
