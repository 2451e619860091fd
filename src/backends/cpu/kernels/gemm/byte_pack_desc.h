// What the kernels before a product of two matrices of bytes need to know.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

// Matrices [depth, columns], or [columns, depth] where they are transposed, into panels with a row of starts each. A
// unit is a panel.
struct PackBytesDesc {
  int64_t depth, columns, panels;
  int64_t transposed, flip;  // as ByteMatrix says
  int64_t aOffset, bOffset;  // of the signed bytes
  int64_t to;                // where panels begin in scratch memory, in words
};

// Sums of rows of bytes, times a factor. A unit is `unitRows` rows.
struct RowStartsDesc {
  int64_t rows, depth, unitRows;
  int64_t factor;
  int64_t to;  // where they begin in scratch memory, in words
};

// Flips the signs of the four bytes of a word, so that unsigned ones less 128 are signed.
inline constexpr int64_t kFlipBytes = 0x80808080;

}  // namespace aglow::cpu
