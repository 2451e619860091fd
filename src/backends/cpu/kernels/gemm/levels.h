// Weights that are small integers with a scale and an offset for each block, as vectors of f32. For kernels only.
#pragma once

#include "backends/cpu/kernels/gemm/matvec_desc.h"
#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

template <int Bits, int W>
struct LevelWeights {
  using V = Lanes<float, W>;
  using Words = Lanes<int32_t, W>;
  static constexpr int C = 2;                // vectors of a panel
  static constexpr int kOfWord = 32 / Bits;  // levels

  const BlockDesc& d;
  const int32_t* levels;
  const float *scales, *offsets;

  AGLOW_INLINE LevelWeights(const BlockDesc& desc, void* const* p)
      : d(desc),
        levels(static_cast<const int32_t*>(p[kBlockLevels])),
        scales(static_cast<const float*>(p[kBlockScales])),
        offsets(static_cast<const float*>(p[kBlockOffsets])) {}

  AGLOW_INLINE const int32_t* wordsAt(int64_t panel, int64_t word) const {
    return levels + (panel * d.words + word) * C * W;
  }
  AGLOW_INLINE const float* scalesAt(int64_t panel, int64_t block) const {
    return scales + (panel * d.scaleBlocks + block / d.share) * C * W;
  }
  AGLOW_INLINE V offset(int64_t panel, int64_t block, int c) const {
    if (d.oneOffset) return splat<float, W>(offsets[0]);
    return loadLanes<V>(offsets + ((panel * d.scaleBlocks + block / d.share) * C + c) * W);
  }
  // What row k of the block holds.
  AGLOW_INLINE V weights(int64_t panel, int64_t block, int64_t k, int c) const {
    const auto words = loadLanes<Words>(wordsAt(panel, k / kOfWord) + c * W);
    const Words level = (words >> static_cast<int32_t>(k % kOfWord * Bits)) & ((1 << Bits) - 1);
    return (convertLanes<V>(level) - offset(panel, block, c)) * loadLanes<V>(scalesAt(panel, block) + c * W);
  }
  // Adds a block one row after the other, for elements that are not finite: infinities give infinities, or NaN.
  AGLOW_INLINE void addPlainly(const float* a, int64_t panel, int64_t block, V (&totals)[C]) const {
    const int64_t first = block * d.block, last = smaller(first + d.block, d.depth);
    AGLOW_ROLLED for (int64_t k = first; k < last; ++k) AGLOW_UNROLL for (int c = 0; c < C; ++c) totals[c] +=
        splat<float, W>(a[k]) * weights(panel, block, k, c);
  }
};

}  // namespace aglow::cpu
