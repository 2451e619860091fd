// What the queries of a head see of the keys, and what becomes of their scores. For kernels only.
#pragma once

#include "backends/cpu/kernels/attention/attention_desc.h"
#include "backends/cpu/kernels/gemm/dots.h"
#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

template <int W>
AGLOW_INLINE float largestLane(Lanes<float, W> v) {
  if constexpr (W == 1) {
    return v[0];
  } else {
    const auto low = lanesFrom<0, W>(v, LanesUpTo<W / 2>{}), high = lanesFrom<W / 2, W>(v, LanesUpTo<W / 2>{});
    return largestLane<W / 2>(low > high ? low : high);
  }
}

template <int W>
struct HeadSight {
  using V = Lanes<float, W>;
  static constexpr float kHidden = -__builtin_inff();

  const AttentionDesc& d;
  void* const* p;
  int64_t batch, head;

  // The keys from lowest to highest that the window shows to a query.
  AGLOW_INLINE int64_t lowest(int64_t query) const { return d.left < 0 ? 0 : larger(query + d.offset - d.left, 0); }
  AGLOW_INLINE int64_t highest(int64_t query) const {
    return d.right < 0 ? d.keys - 1 : smaller(query + d.offset + d.right, d.keys - 1);
  }
  AGLOW_INLINE int64_t maskAt(int64_t query, int64_t key) const {
    return batch * d.maskBatch + head * d.maskHead + query * d.maskQuery + key * d.maskKey;
  }

  // What the mask makes of the scores of `count` keys.
  AGLOW_INLINE V masked(V score, int64_t query, int64_t key, int64_t count) const {
    if (d.mask == kFloatMask) {
      const float* at = static_cast<const float*>(p[d.maskNumber]) + maskAt(query, key);
      return score + (d.maskKey == 0 ? splat<float, W>(*at) : loadSome<W>(at, count));
    }
    const uint8_t* at = static_cast<const uint8_t*>(p[d.maskNumber]) + maskAt(query, key);
    Lanes<uint8_t, W> shown{};
    if (d.maskKey == 0)
      shown = splat<uint8_t, W>(*at);
    else if (count == W)
      shown = loadLanes<Lanes<uint8_t, W>>(at);
    else
      AGLOW_ROLLED for (int64_t i = 0; i < count; ++i) shown[i] = at[i];
    return convertLanes<I32<W>>(shown) != 0 ? score : V(kHidden);
  }

  // A row of scores of the keys from `key` on, scaled and masked. Returns the largest one.
  AGLOW_INLINE float maskedRow(float* row, int64_t query, int64_t key, int64_t count) const {
    const int64_t low = lowest(query) - key, high = highest(query) - key;
    const auto scale = bitsAs<float>(d.scale);
    V most = V(kHidden);
    const auto take = [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
      V score = loadLanes<V>(row + i) * scale;
      if (d.mask != kNoMask) score = masked(score, query, key + i, lanes);
      if (d.windowed != 0 || lanes < W) {
        I32<W> at;
        AGLOW_UNROLL for (int lane = 0; lane < W; ++lane) at[lane] = lane;
        at += static_cast<int32_t>(i);
        const auto from = static_cast<int32_t>(smaller(larger(low, 0), count)),
                   to = static_cast<int32_t>(larger(smaller(high, count - 1), -1));
        const I32<W> shown = (at >= from) & (at <= to);
        score = shown ? score : V(kHidden);
      }
      storeLanes(row + i, score);
      most = score > most ? score : most;
    };
    int64_t i = 0;
    AGLOW_ROLLED for (; i + W <= count; i += W) take(i, W);
    if (i < count) take(i, count - i);
    return largestLane<W>(most);
  }

  // Whether window and mask let a query see any key.
  AGLOW_INLINE bool sees(int64_t query) const {
    AGLOW_ROLLED for (int64_t key = lowest(query); key <= highest(query); ++key) {
      if (d.mask == kNoMask) return true;
      const int64_t at = maskAt(query, key);
      if (d.mask == kBoolMask ? static_cast<const uint8_t*>(p[d.maskNumber])[at] != 0
                              : static_cast<const float*>(p[d.maskNumber])[at] != kHidden)
        return true;
    }
    return false;
  }
};

}  // namespace aglow::cpu
