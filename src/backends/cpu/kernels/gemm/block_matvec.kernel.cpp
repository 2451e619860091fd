// Few rows by a matrix of small integers with a scale for each block, which is read once and as fast as memory allows.
//
// A level becomes an f32 without arithmetic: put into the highest bits of the mantissa of 1 it is 1 + level / 2^bits.
// What the ones and the offset add to a sum is the same for all levels of a block, 1 + offset / 2^bits times the sum of
// a's elements there, and is taken off where the sum begins.
#include "backends/cpu/kernels/gemm/levels.h"

namespace aglow::cpu {

// Of each row and block, the sum of the elements.
AGLOW_INLINE int32_t blockSums(const BlockDesc& d, void* const* p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* a = static_cast<const float*>(p[kBlockA]) + row * d.depth;
    float* sums = static_cast<float*>(p[kBlockScratch]) + row * d.blocks;
    for (int64_t b = 0; b < d.blocks; ++b) {
      const int64_t last = smaller((b + 1) * d.block, d.depth);
      float sum = 0;
      for (int64_t k = b * d.block; k < last; ++k) sum += a[k];
      sums[b] = sum;
    }
  }
  return kDone;
}

template <int Bits, int W>
AGLOW_INLINE Lanes<float, W> levelAt(Lanes<uint32_t, W> words, int place) {
  constexpr uint32_t kOne = 0x3F800000;
  constexpr int kMantissa = 23;
  constexpr uint32_t kMask = ((1u << Bits) - 1) << (kMantissa - Bits);
  const int up = kMantissa - Bits - place * Bits;
  const Lanes<uint32_t, W> bits = ((up >= 0 ? words << up : words >> -up) & kMask) | kOne;
  Lanes<float, W> level;
  __builtin_memcpy(&level, &bits, sizeof(level));
  return level;
}

template <int Bits, int W, int M>
AGLOW_INLINE int32_t blockMatVec(const BlockDesc& d, void* const* p, int64_t begin, int64_t end,
                                 Epilogue<W>* epilogue) {
  using V = Lanes<float, W>;
  using Words = Lanes<uint32_t, W>;
  constexpr int S = matVecPanels(M), C = 2, kTogether = 32 / Bits;
  constexpr float kLevels = 1 << Bits;
  const float* a = static_cast<const float*>(p[kBlockA]);
  const LevelWeights<Bits, W> weights(d, p);
  const float* blockSum = static_cast<const float*>(p[kBlockScratch]);
  for (int64_t unit = begin; unit < end; ++unit) {
    int64_t panel[S];
    AGLOW_UNROLL for (int s = 0; s < S; ++s) panel[s] = smaller(unit * S + s, d.panels - 1);
    V totals[M][S][C];
    AGLOW_UNROLL for (int m = 0; m < M; ++m) AGLOW_UNROLL for (int s = 0; s < S; ++s)
        AGLOW_UNROLL for (int c = 0; c < C; ++c) totals[m][s][c] = V{};
    AGLOW_ROLLED for (int64_t b = 0; b < d.blocks; ++b) {
      bool finite = true;
      AGLOW_UNROLL for (int m = 0; m < M; ++m) finite = finite && blockSum[m * d.blocks + b] * 0 == 0;
      if (!finite) {
        AGLOW_UNROLL for (int m = 0; m < M; ++m) AGLOW_UNROLL for (int s = 0; s < S; ++s) {
          V block[C] = {};
          weights.addPlainly(a + m * d.depth, panel[s], b, block);
          AGLOW_UNROLL for (int c = 0; c < C; ++c) totals[m][s][c] += block[c] * (1 / kLevels);
        }
        continue;
      }
      V sums[M][S][C];
      AGLOW_UNROLL for (int m = 0; m < M; ++m) {
        const float sum = blockSum[m * d.blocks + b];
        AGLOW_UNROLL for (int s = 0; s < S; ++s) AGLOW_UNROLL for (int c = 0; c < C; ++c) {
          if (d.oneOffset) {
            sums[m][s][c] = splat<float, W>(-sum * (1 + weights.offsets[0] / kLevels));
          } else {
            sums[m][s][c] = (weights.offset(panel[s], b, c) * (1 / kLevels) + 1) * -sum;
          }
        }
      }
      const int64_t first = b * d.block, last = smaller(first + d.block, d.depth);
      const auto add = [&](int64_t k, int places) __attribute__((always_inline)) {
        AGLOW_UNROLL for (int s = 0; s < S; ++s) AGLOW_UNROLL for (int c = 0; c < C; ++c) {
          const int32_t* at = weights.wordsAt(panel[s], k / kTogether) + c * W;
          if (d.ahead != 0 && c * W % kLine == 0) __builtin_prefetch(at + d.ahead);
          const Words words = loadLanes<Words>(at);
          AGLOW_UNROLL for (int place = 0; place < kTogether; ++place) {
            if (place >= places) continue;
            const V level = levelAt<Bits, W>(words, place);
            AGLOW_UNROLL for (int m = 0; m < M; ++m) sums[m][s][c] =
                splat<float, W>(a[m * d.depth + k + place]) * level + sums[m][s][c];
          }
        }
      };
      int64_t k = first;
      AGLOW_ROLLED for (; k + kTogether <= last; k += kTogether) add(k, kTogether);
      if (k < last) add(k, static_cast<int>(last - k));
      AGLOW_UNROLL for (int s = 0; s < S; ++s) AGLOW_UNROLL for (int c = 0; c < C; ++c) {
        const V scale = loadLanes<V>(weights.scalesAt(panel[s], b) + c * W);
        AGLOW_UNROLL for (int m = 0; m < M; ++m) totals[m][s][c] = sums[m][s][c] * scale + totals[m][s][c];
      }
    }
    V results[M * S * C];
    AGLOW_UNROLL for (int m = 0; m < M; ++m) AGLOW_UNROLL for (int s = 0; s < S; ++s)
        AGLOW_UNROLL for (int c = 0; c < C; ++c) results[(m * S + s) * C + c] = totals[m][s][c] * kLevels;
    AGLOW_ROLLED for (int i = 0; i < M * S * C; ++i) {
      const int64_t vector = unit * S * C + i % (S * C);
      if (vector < d.vectors)
        epilogue(results[i], p, 0, 0, i / (S * C), vector * W, smaller(W, d.columns - vector * W));
    }
  }
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_BLOCKS(B, W, M)                                                                                          \
  extern "C" int32_t aglow_block_matvec_b##B##_m##M##_w##W(                                                            \
      const aglow::cpu::BlockDesc* d, void* const* p, int64_t begin, int64_t end, aglow::cpu::Epilogue<W>* epilogue) { \
    return aglow::cpu::blockMatVec<B, W, M>(*d, p, begin, end, epilogue);                                              \
  }
#define AGLOW_BLOCKS_ROWS(B, W) AGLOW_BLOCKS(B, W, 1) AGLOW_BLOCKS(B, W, 2) AGLOW_BLOCKS(B, W, 3) AGLOW_BLOCKS(B, W, 4)
#define AGLOW_BLOCKS_WIDTH(W) AGLOW_BLOCKS_ROWS(4, W) AGLOW_BLOCKS_ROWS(8, W)

AGLOW_BLOCKS_WIDTH(4)
AGLOW_BLOCKS_WIDTH(8)
AGLOW_BLOCKS_WIDTH(16)

extern "C" int32_t aglow_block_sums(const aglow::cpu::BlockDesc* d, void* const* p, int64_t begin, int64_t end) {
  return aglow::cpu::blockSums(*d, p, begin, end);
}
