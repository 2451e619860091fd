// What products on matrix registers compute.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

// Rows by panels of 32 columns. A unit is a group of pairs of 16 rows by a group of panels.
struct MatrixDesc {
  int64_t rows, rowBytes;  // how many; from one to the next
  int64_t groups;          // of four bytes that are multiplied together; rows have zeros up to a multiple of 16
  int64_t columns, vectors, panels;
  int64_t rowGroups, panelGroups;
  int64_t ahead;      // 1: the next panel is asked for while the one before it is read
  int64_t positions;  // 0: the epilogue sees [1, 1, row, column]; else [image, vector, position, lane] of so many
};

// Windows of images in blocks of channels as rows. Rounds go in twos over a stretch of the rows: the first copies what
// each of them sees, tap after tap, to scratch memory, the second multiplies.
struct WindowRowsDesc {
  MatrixDesc product;
  int64_t stretch;                   // rows
  int64_t pointwise;                 // 1: each window is one position, in their order
  int64_t channelBytes, blockBytes;  // of a position: all, and as many as lie together
  int64_t xImage, xBlock, xRow;      // in bytes
  int64_t height, width, outWidth;
  int64_t kh, kw, sy, sx, py, px, dy, dx;
  int64_t outside;  // what bytes outside of the image are
};

// Rows that are worth it, and bytes of a row in a step.
inline constexpr int64_t kMatrixRows = 8, kMatrixStep = 64;

// Whether windows that see so many bytes are worth being copied to rows: what is multiplied outweighs what is moved.
constexpr bool areWorthRows(int64_t rows, int64_t bytes, int64_t outputs) {
  constexpr int64_t kOfRow = 1 << 14, kOfAll = 1 << 22;  // products of bytes
  return rows >= kMatrixRows && bytes * outputs >= kOfRow && rows * bytes * outputs >= kOfAll;
}

}  // namespace aglow::cpu
