// Windows over planes of blocked channels, [N, blocks, H, W, lanes]: convolutions of small groups, and pools. Plans
// fill the descriptor, kernels read it.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

struct PlaneDesc {
  int64_t blocks;         // planes of an image
  int64_t height, width;  // of the input
  int64_t kh, kw, sy, sx, py, px, dy, dx;
  int64_t bottom, right;  // padding at the ends
  int64_t outHeight, outWidth;
  int64_t countPadding;  // means: 1 when padding counts
  int64_t members;       // channels of a group, which a block has several of
  int64_t outside;       // bytes: what stands outside of the input

  // A row of results is cut into `tiles` tiles; the first `tall` have as many columns as the kernel's name says, the
  // others one less. At most `leftOutside` columns of a tile reach out of the input at its beginning, `rightOutside` at
  // its end. A unit is one of the groups of a plane's tiles.
  int64_t tiles, tall, leftOutside, rightOutside;
  int64_t tileGroups;
};

}  // namespace aglow::cpu
