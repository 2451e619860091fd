// Few rows by a matrix of small integers with a scale for each block, where four bytes are multiplied at once.
//
// The elements of a row become integers of 23 bits, in units of a block's own that are a power of two, and those three
// signed bytes: as much as f32 keeps of a sum. Their products with levels are exact. What is not finite is added
// afterwards, as f32.
#include "backends/cpu/kernels/gemm/levels.h"

namespace aglow::cpu {

constexpr int kParts = 3;     // bytes of an element, the highest first
constexpr int kTogether = 4;  // bytes that are multiplied at once

// What becomes of the rows, in scratch memory.
struct LevelRows {
  int32_t* bytes;       // [row][word][group of its levels][part]
  float *units, *sums;  // [row][block]: what 1 stands for; the sum of the integers, in units
  int32_t* infinite;    // [row]: whether an element is not finite; the units of its block are 0
};

AGLOW_INLINE LevelRows levelRows(const BlockDesc& d, void* const* p) {
  LevelRows rows;
  rows.bytes = static_cast<int32_t*>(p[kBlockScratch]);
  rows.units = reinterpret_cast<float*>(rows.bytes + d.rows * d.words * d.groups * kParts);
  rows.sums = rows.units + d.rows * d.blocks;
  rows.infinite = reinterpret_cast<int32_t*>(rows.sums + d.rows * d.blocks);
  return rows;
}

constexpr uint32_t kMagnitude = 0x7FFFFFFF, kInfinity = 0x7F800000;
constexpr int kEight = 8;
using Floats = Lanes<float, kEight>;
using Wholes = Lanes<int32_t, kEight>;
using Bytes = Lanes<int8_t, kEight>;

// Eight elements, zeros after the last.
AGLOW_INLINE Floats loadEight(const float* a, int64_t count) {
  if (count >= kEight) return loadLanes<Floats>(a);
  float values[kEight] = {};
  for (int64_t i = 0; i < count; ++i) values[i] = a[i];
  return loadLanes<Floats>(values);
}

// The largest magnitude of a block, as bits; NaN is larger than infinity.
AGLOW_INLINE int32_t largest(const float* a, int64_t count) {
  Wholes most{};
  for (int64_t i = 0; i < count; i += kEight) {
    const Wholes bits = bitsAs<Wholes>(loadEight(a + i, count - i)) & static_cast<int32_t>(kMagnitude);
    most = bits > most ? bits : most;
  }
  int32_t result = 0;
  AGLOW_UNROLL for (int i = 0; i < kEight; ++i) result = most[i] > result ? most[i] : result;
  return result;
}

AGLOW_INLINE int32_t levelBytes(const BlockDesc& d, void* const* p, int64_t begin, int64_t end) {
  constexpr int kMantissa = 23, kDigits = 22, kBias = 127;
  constexpr int kLeast = 24;              // exponents below make units that are no normal numbers
  constexpr float kRounding = 0x1.8p23f;  // added, it leaves whole numbers in the lowest bits
  const LevelRows rows = levelRows(d, p);
  for (int64_t row = begin; row < end; ++row) {
    const float* a = static_cast<const float*>(p[kBlockA]) + row * d.depth;
    rows.infinite[row] = 0;
    for (int64_t b = 0; b < d.blocks; ++b) {
      const int64_t first = b * d.block, last = smaller(first + d.block, d.depth);
      const int32_t most = largest(a + first, last - first);
      const bool finite = most < static_cast<int32_t>(kInfinity);
      // 2^(exponent - kBias + 1) is above all of them.
      const int32_t exponent = static_cast<int32_t>(larger(most >> kMantissa, kLeast));
      const float unit = bitsAs<float>((exponent + 1 - kDigits) << kMantissa);
      const float perUnit = bitsAs<float>((2 * kBias - 1 - exponent + kDigits) << kMantissa);
      Wholes sum{};
      for (int64_t k = first; k < last; k += kEight) {
        const Floats x = finite ? loadEight(a + k, last - k) : Floats{};
        const Wholes whole = bitsAs<Wholes>(x * perUnit + kRounding) - bitsAs<int32_t>(kRounding);
        sum += whole;
        Bytes parts[kParts];
        parts[2] = convertLanes<Bytes>(whole);
        const Wholes upper = (whole - convertLanes<Wholes>(parts[2])) >> 8;
        parts[1] = convertLanes<Bytes>(upper);
        parts[0] = convertLanes<Bytes>((upper - convertLanes<Wholes>(parts[1])) >> 8);
        // Two groups of four levels: of one word every second one, or of two words.
        int32_t* to = rows.bytes + (row * d.words * d.groups + k / kTogether) * kParts;
        AGLOW_UNROLL for (int part = 0; part < kParts; ++part) {
          Bytes bytes = parts[part];
          if (d.groups == 2) bytes = __builtin_shufflevector(bytes, bytes, 0, 2, 4, 6, 1, 3, 5, 7);
          const auto both = bitsAs<Lanes<int32_t, 2>>(bytes);
          to[part] = both[0];
          if (d.groups == 2 || k + kTogether < last) to[kParts + part] = both[1];
        }
      }
      int64_t total = 0;
      AGLOW_UNROLL for (int i = 0; i < kEight; ++i) total += sum[i];
      rows.units[row * d.blocks + b] = finite ? unit : 0;
      rows.sums[row * d.blocks + b] = static_cast<float>(total);
      rows.infinite[row] |= finite ? 0 : 1;
    }
  }
  return kDone;
}

// Adds a block of a panel.
template <int Bits, int W, int M>
AGLOW_INLINE void addBlock(const LevelWeights<Bits, W>& w, const LevelRows& rows, Dot<W>* dot, int64_t panel, int64_t b,
                           Lanes<float, W> (&totals)[M][2]) {
  using V = Lanes<float, W>;
  using Words = Lanes<int32_t, W>;
  constexpr int C = 2, kGroups = 8 / Bits, kLevels = kGroups * kTogether;
  constexpr uint32_t kMask = 0x01010101u * ((1u << Bits) - 1);
  const BlockDesc& d = w.d;
  Words sums[M][C][kParts];
  AGLOW_UNROLL for (int m = 0; m < M; ++m) AGLOW_UNROLL for (int c = 0; c < C; ++c)
      AGLOW_UNROLL for (int part = 0; part < kParts; ++part) sums[m][c][part] = Words{};
  const int64_t first = b * d.block / kLevels, last = smaller(first + d.block / kLevels, d.words);
  if (d.ahead != 0 && d.share == 1) {
    const int64_t blocksAhead = d.ahead / (d.block / kLevels * C * W);
    AGLOW_UNROLL for (int64_t line = 0; line < C * W; line += kLine)
        __builtin_prefetch(w.scalesAt(panel, b + blocksAhead) + line);
  }
  AGLOW_ROLLED for (int64_t word = first; word < last; ++word) {
    const int32_t* at = w.wordsAt(panel, word);
    Words words[C];
    AGLOW_UNROLL for (int c = 0; c < C; ++c) {
      if (d.ahead != 0 && c * W % kLine == 0) __builtin_prefetch(at + d.ahead + c * W);
      words[c] = loadLanes<Words>(at + c * W);
    }
    AGLOW_UNROLL for (int g = 0; g < kGroups; ++g) AGLOW_UNROLL for (int m = 0; m < M; ++m)
        AGLOW_UNROLL for (int part = 0; part < kParts; ++part) {
      const Words x = splat<int32_t, W>(rows.bytes[((m * d.words + word) * kGroups + g) * kParts + part]);
      AGLOW_UNROLL for (int c = 0; c < C; ++c) {
        const Words bytes = kGroups == 1 ? words[c] : (words[c] >> (g * Bits)) & static_cast<int32_t>(kMask);
        sums[m][c][part] = dot(sums[m][c][part], bytes, x);
      }
    }
  }
  AGLOW_UNROLL for (int c = 0; c < C; ++c) {
    const V scale = loadLanes<V>(w.scalesAt(panel, b) + c * W), offset = w.offset(panel, b, c);
    AGLOW_UNROLL for (int m = 0; m < M; ++m) {
      const float unit = rows.units[m * d.blocks + b], sum = rows.sums[m * d.blocks + b];
      const V lower = convertLanes<V>((sums[m][c][1] << 8) + sums[m][c][2]);
      const V whole = convertLanes<V>(sums[m][c][0]) * 0x1p16f + lower;
      totals[m][c] = (whole - offset * sum) * (scale * unit) + totals[m][c];
    }
  }
}

template <int Bits, int W, int M>
AGLOW_INLINE int32_t levelMatVec(const BlockDesc& d, void* const* p, int64_t begin, int64_t end, Epilogue<W>* epilogue,
                                 Dot<W>* dot) {
  using V = Lanes<float, W>;
  constexpr int C = 2;
  const LevelWeights<Bits, W> weights(d, p);
  const LevelRows rows = levelRows(d, p);
  // One panel after the other, as they lie: the processor fetches one stream faster than several short ones.
  for (int64_t panel = begin * d.unitPanels; panel < smaller(end * d.unitPanels, d.panels); ++panel) {
    V totals[M][C];
    AGLOW_UNROLL for (int m = 0; m < M; ++m) AGLOW_UNROLL for (int c = 0; c < C; ++c) totals[m][c] = V{};
    AGLOW_ROLLED for (int64_t b = 0; b < d.blocks; ++b) addBlock(weights, rows, dot, panel, b, totals);
    AGLOW_UNROLL for (int m = 0; m < M; ++m) {
      const float* a = static_cast<const float*>(p[kBlockA]) + m * d.depth;
      AGLOW_ROLLED for (int64_t b = 0; rows.infinite[m] != 0 && b < d.blocks;
                        ++b) if (rows.units[m * d.blocks + b] == 0) weights.addPlainly(a, panel, b, totals[m]);
    }
    V results[M * C];
    AGLOW_UNROLL for (int m = 0; m < M; ++m) AGLOW_UNROLL for (int c = 0; c < C; ++c) results[m * C + c] = totals[m][c];
    AGLOW_ROLLED for (int i = 0; i < M * C; ++i) {
      const int64_t column = (panel * C + i % C) * W;
      if (column < d.columns) epilogue(results[i], p, 0, 0, i / C, column, smaller(W, d.columns - column));
    }
  }
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_LEVELS(B, W, M)                                                                                        \
  extern "C" int32_t aglow_level_matvec_b##B##_m##M##_w##W(                                                          \
      const aglow::cpu::BlockDesc* d, void* const* p, int64_t begin, int64_t end, aglow::cpu::Epilogue<W>* epilogue, \
      aglow::cpu::Dot<W>* dot) {                                                                                     \
    return aglow::cpu::levelMatVec<B, W, M>(*d, p, begin, end, epilogue, dot);                                       \
  }
#define AGLOW_LEVELS_ROWS(B, W) AGLOW_LEVELS(B, W, 1) AGLOW_LEVELS(B, W, 2) AGLOW_LEVELS(B, W, 3) AGLOW_LEVELS(B, W, 4)
#define AGLOW_LEVELS_WIDTH(W) AGLOW_LEVELS_ROWS(4, W) AGLOW_LEVELS_ROWS(8, W)

AGLOW_LEVELS_WIDTH(4)
AGLOW_LEVELS_WIDTH(8)
AGLOW_LEVELS_WIDTH(16)

extern "C" int32_t aglow_level_bytes(const aglow::cpu::BlockDesc* d, void* const* p, int64_t begin, int64_t end) {
  return aglow::cpu::levelBytes(*d, p, begin, end);
}
