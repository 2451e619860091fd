// What the register-tile product computes: a convolution in the general sense, of which a product of matrices is the
// one with a single tap. Plans fill the descriptor, kernels read it.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

// Where an operand starts: the number of its address in p, and an offset in elements.
struct TilePlace {
  int64_t operand;
  int64_t offset;
};

// The input holds channel c of the position (y, x) of an image at
//   c / block * xBlock + y * xRow + x * xColumn + c % block * xChannel
// and the filter's row for the tap (ky, kx) and that channel, panel by panel, at
//   panel * wPanel + ((ky * kw + kx) * channels + c) * wRow.
// All distances are in elements, which are f32, or four bytes or two bf16 of neighbouring channels. A product of
// matrices has the rows of its left operand as columns of one row.
struct TileDesc {
  TilePlace x, w, partial;

  // 1: results go to memory instead of the epilogue, at image * yImage + vector * yVector + column * W.
  int64_t stored;
  TilePlace y;
  int64_t yImage, yVector;

  // Images (or batches of matrices), as three axes with the distances of both operands.
  int64_t images[3], xImage[3], wImage[3];

  int64_t channels, block;  // input channels of a group; those that follow each other evenly, at most 16 if closely
  int64_t xBlock, xRow, xColumn, xChannel, xGroup;
  int64_t wPanel, wRow;
  // 1: the row of weights after the last one holds what the sums of its columns start from; those of a row of the left
  // operand start from an element of rowStarts as well, where there are some.
  int64_t starts, hasRowStarts;
  TilePlace rowStarts;
  int64_t height, width;  // of the input
  int64_t kh, kw, sy, sx, py, px, dy, dx;
  int64_t outHeight, outWidth;
  int64_t panels, panelsPerGroup;  // two vectors each
  int64_t vectors;                 // of the result; the last panel may have one
  int64_t columns;                 // of the result along the vectors: vectors * W, or less for matrices
  int64_t matrix;                  // 1: the epilogue sees [1, image, row, column], 0: [image, vector, position, lane]

  // A row of results is cut into `tiles` tiles; the first `tall` have as many columns as the kernel's name says, the
  // others one less. At most `left` columns of a tile reach out of the input at its beginning, `right` at its end.
  int64_t tiles, tall, left, right;

  // A unit is a group of tiles by a group of panels, and has its own slice of the partial sums. All its tiles meet one
  // panel before the next, and the sums over the channels are taken in passes of `passBlocks` blocks. Within a pass
  // `spanBlocks` blocks are summed up before they join the totals: of two short sums of f32 less is lost than of a long
  // one.
  int64_t tileGroups, panelGroups;
  int64_t passBlocks, spanBlocks;
  int64_t wide;          // 1: totals are f64, for more of them than f32 adds up well
  int64_t unitPartials;  // floats of a slice of totals, where they outlive a pass
  int64_t direct;        // 1: results go from registers to the epilogue; for sums so short that it matters
  // Lines of the next panel that each tile asks for, out of those that go with a tap of a block of channels.
  int64_t prefetch, prefetchable;
  int64_t outside;     // four bytes that stand for those outside of the input
  int64_t reachesOut;  // 1: windows reach rows outside of the input
};

}  // namespace aglow::cpu
