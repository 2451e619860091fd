// Matrices of bytes that are known when code runs, in the panels that products of bytes read. For kernels only.
#pragma once

#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

// A matrix [depth, columns] of signed bytes, or of unsigned ones that `flip` makes signed. Rows lie `step` apart; those
// of a transposed one are its columns.
struct ByteMatrix {
  int64_t depth, columns, step;
  int64_t transposed;
  int64_t flip;  // 0x80 in each byte of a word, or 0
};

// (a - x) * (b - y) is a * b - x * sum(b) - y * sum(a) + depth * x * y. All but the first and the sum over a is what
// the sums of a column start from.
struct ByteOffsets {
  int64_t a, b;
};

AGLOW_INLINE int64_t byteGroups(int64_t depth) { return roundedUp(depth, 4); }

// The four bytes of each word, added. Bytes are signed ones, or unsigned.
template <int W, class Byte>
AGLOW_INLINE Lanes<int32_t, W> sumBytes(Lanes<int32_t, W> words) {
  using Words = Lanes<uint32_t, W>;
  Lanes<int32_t, W> sum{};
  AGLOW_UNROLL for (int place = 0; place < 4; ++place) {
    const Words top = __builtin_bit_cast(Words, words) << (24 - 8 * place);
    if constexpr (Byte(-1) < 0)
      sum += __builtin_bit_cast(Lanes<int32_t, W>, top) >> 24;
    else
      sum += __builtin_bit_cast(Lanes<int32_t, W>, top >> 24);
  }
  return sum;
}

// Four rows from `row` on of the W columns from `column` on, where all of these exist.
template <int W>
AGLOW_INLINE Lanes<int32_t, W> wholeWords(const ByteMatrix& m, const uint8_t* from, int64_t row, int64_t column) {
  Lanes<int32_t, W> words{};
  if (m.transposed) {
    AGLOW_UNROLL for (int lane = 0; lane < W; ++lane) {
      int32_t word;
      __builtin_memcpy(&word, from + (column + lane) * m.step + row, sizeof(word));
      words[lane] = word;
    }
  } else {
    AGLOW_UNROLL for (int place = 0; place < 4; ++place) {
      const auto bytes = loadLanes<Lanes<uint8_t, W>>(from + (row + place) * m.step + column);
      words |= convertLanes<Lanes<int32_t, W>>(bytes) << (8 * place);
    }
  }
  return words ^ splat<int32_t, W>(static_cast<int32_t>(m.flip));
}

// The same where some do not; zeros stand for those.
template <int W>
AGLOW_INLINE Lanes<int32_t, W> someWords(const ByteMatrix& m, const uint8_t* from, int64_t row, int64_t column) {
  const int64_t rows = smaller(4, m.depth - row), lanes = smaller(W, m.columns - column);
  const auto flip = static_cast<uint8_t>(m.flip);
  int32_t words[W] = {};
  AGLOW_ROLLED for (int64_t lane = 0; lane < lanes; ++lane)
      AGLOW_ROLLED for (int64_t place = 0; place < rows; ++place) {
    const int64_t at = m.transposed ? (column + lane) * m.step + row + place : (row + place) * m.step + column + lane;
    const uint32_t byte = static_cast<uint8_t>(from[at] ^ flip);
    words[lane] |= static_cast<int32_t>(byte << (8 * place));
  }
  return loadLanes<Lanes<int32_t, W>>(words);
}

// The panel of 2 W columns from `column` on: [depth / 4, 2 W] words, and a row of starts.
template <int W>
AGLOW_INLINE void packBytePanel(const ByteMatrix& m, const ByteOffsets& offsets, const uint8_t* from, int64_t column,
                                int32_t* to) {
  using V = Lanes<int32_t, W>;
  const int64_t groups = byteGroups(m.depth);
  AGLOW_ROLLED for (int64_t half = 0; half < 2; ++half, column += W, to += W) {
    V sum{};
    const bool whole = column + W <= m.columns;
    AGLOW_ROLLED for (int64_t group = 0; group < groups; ++group) {
      const V words = whole && 4 * group + 4 <= m.depth ? wholeWords<W>(m, from, 4 * group, column)
                                                        : someWords<W>(m, from, 4 * group, column);
      storeLanes(to + group * 2 * W, words);
      sum += sumBytes<W, int8_t>(words);
    }
    const auto a = static_cast<int32_t>(offsets.a), all = static_cast<int32_t>(m.depth * offsets.a * offsets.b);
    storeLanes(to + groups * 2 * W, splat<int32_t, W>(all) - splat<int32_t, W>(a) * sum);
  }
}

// The sum of `count` unsigned bytes.
template <int W>
AGLOW_INLINE int32_t sumOfRow(const uint8_t* from, int64_t count) {
  using V = Lanes<int32_t, W>;
  V sum{};
  int64_t i = 0;
  AGLOW_ROLLED for (; i + 4 * W <= count; i += 4 * W) sum += sumBytes<W, uint8_t>(loadLanes<V>(from + i));
  int32_t total = 0;
  AGLOW_UNROLL for (int lane = 0; lane < W; ++lane) total += sum[lane];
  AGLOW_ROLLED for (; i < count; ++i) total += from[i];
  return total;
}

}  // namespace aglow::cpu
