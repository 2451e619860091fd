// Sums of outer products: at each place of a plane, a row of x's channels by a row of g's, summed up over all places of
// all images. That is the product of a transposed matrix, and what a convolution owes its filter. Plans fill the
// descriptor, kernels read it.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

// x holds channel c of the position (y, x) of an image at
//   c / block * xBlock + y * xRow + x * xColumn + c % block * xChannel
// and g its vector v of the place (row, column) at v / 2 * gPanel + v % 2 * gVector + row * gRow + column * gColumn.
// The tap (ky, kx) of a place sees the position row * sy - py + ky * dy, column * sx - px + kx * dx. Results of a tap
// and a channel go to
//   panel * yPanel + (tap * channels + c) * yRow.
// All distances are in elements.
struct OuterDesc {
  int64_t x, g, gOffset;                    // numbers of their addresses, and how many elements after it g begins
  int64_t batches, xBatch, gBatch, yBatch;  // of independent sums
  int64_t images, rows, columns;            // what is summed over: the places of g
  int64_t xImage, xRow, xColumn, xBlock, xChannel;
  int64_t gImage, gRow, gColumn, gVector, gPanel;
  int64_t yPanel, yRow;
  int64_t channels, block;
  int64_t height, width;  // of x
  int64_t kh, kw, sy, sx, py, px, dy, dx;
  int64_t vectors, panels;  // of g; two vectors each, the last may have one
  int64_t filled;           // 1: the results of a missing vector are zero
  int64_t padded;           // 1: x has elements after its last channel, to whole blocks

  // 1: a tile has results of several taps or blocks, each with its own distances; 0: of neighbouring channels of one.
  int64_t mixed;
  // Of a panel: as many results as the kernel holds in registers, all taps of some channels after each other. A unit is
  // a group of tiles by a group of panels, of a batch.
  int64_t tiles, tileGroups, panelGroups;
  int64_t partRows, partCols;  // of g: what is summed up before it joins the totals, and stays in the cache meanwhile
};

}  // namespace aglow::cpu
