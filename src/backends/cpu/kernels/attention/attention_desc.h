// What the kernels of attention need to know. Plans fill the descriptors, kernels read them.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

// Distances, in elements, between batches, heads and rows of a tensor. The elements of a row lie side by side.
struct AttentionRows {
  int64_t batch, head, row;
};

enum AttentionMask : int64_t { kNoMask, kBoolMask, kFloatMask };

struct AttentionDesc {
  int64_t batch, heads, groups;  // heads of q, and of k and v
  int64_t queries, keys, width, valueWidth;
  AttentionRows q, k, v, y;

  int64_t mask, maskNumber;                         // its kind, and the number of its address
  int64_t maskBatch, maskHead, maskQuery, maskKey;  // distances; that of keys is 0 or 1
  int64_t windowed, left, right, offset;            // as the record says
  uint32_t scale, unused;                           // bits of a float

  // The scratch memory holds, for each batch and head of k, k in panels [keys / 2 W, width, 2 W] and v in panels
  // [valueWidth / 2 W, keys, 2 W], filled up with zeros.
  int64_t scratch, valueOffset, headFloats;

  // The queries of a head are cut into `blocks`; the first `tall` have as many rows as the kernel's name says, the
  // others one less.
  int64_t blocks, tall;
};

// Over bytes. The scratch memory holds k in panels [keys / 2 W, width / 4 + 1, 2 W] of words of four bytes, and v in
// panels [valueWidth / 2 W, keys / 4 + 1, 2 W], each with a row of starts (gemm/byte_pack.h).
struct ByteAttentionDesc {
  AttentionDesc whole;                // distances in bytes, but for those of the scratch memory, which are in words
  int64_t qFlip, kFlip, vFlip;        // make q unsigned, k and v signed
  int64_t qOffset, kOffset, vOffset;  // of these
  uint32_t vScale, unused;            // bits of a float
};

// Elements of a query or value at most.
inline constexpr int64_t kByteAttentionWidth = 256;

// Keys whose scores are in memory at once.
inline constexpr int64_t kAttentionKeys = 256;

}  // namespace aglow::cpu
