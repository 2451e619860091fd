// Winograd's method for 3x3 windows: tiles of the input are transformed (V), multiplied by the transformed filter
// position by position (M), and transformed back. Plans fill the descriptor, kernels read it.
#pragma once

#include "backends/cpu/kernels/gemm/tile_desc.h"

namespace aglow::cpu {

struct WinogradDesc {
  int64_t blocks, vectors;        // of lanes: input and output channels
  int64_t height, width, py, px;  // of the input
  int64_t outHeight, outWidth;
  int64_t tilesDown, tilesAcross, tiles;  // tiles of an image, and of all

  // Tiles are done in runs of `run`. V holds [position][block][tile of the run][lane], M the same with vectors; a
  // position's matrix and the distance to the next:
  int64_t run, vPosition, mPosition;
  int64_t scratch, vOffset, mOffset;  // number of the address, offsets in elements

  // All in one: a unit is a group of runs with V and M of its own, unitElements from one to the next. The products are
  // those of a run. Otherwise there is one run, and a unit of a transform is a group of tiles of a block.
  int64_t units, unitElements;
  int64_t tileGroups;
  TileDesc products;
};

}  // namespace aglow::cpu
