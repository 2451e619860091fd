// Products of matrices and convolutions in register tiles.
#include "backends/cpu/kernels/gemm/tile.h"

#define AGLOW_TILES(W, R)                                                                                  \
  extern "C" int32_t aglow_tiles_r##R##_w##W(const aglow::cpu::TileDesc* d, void* const* p, int64_t begin, \
                                             int64_t end, aglow::cpu::Epilogue<W>* epilogue) {             \
    return aglow::cpu::tileStep<W, R>(aglow::cpu::FloatProducts<W>{}, *d, p, begin, end, epilogue);        \
  }
#define AGLOW_TILES_ROWS(R) AGLOW_TILES(4, R) AGLOW_TILES(8, R) AGLOW_TILES(16, R)

AGLOW_TILES_ROWS(1)
AGLOW_TILES_ROWS(2)
AGLOW_TILES_ROWS(3)
AGLOW_TILES_ROWS(4)
AGLOW_TILES_ROWS(5)
AGLOW_TILES_ROWS(6)
AGLOW_TILES_ROWS(7)
AGLOW_TILES_ROWS(8)
AGLOW_TILES_ROWS(9)
AGLOW_TILES_ROWS(10)
AGLOW_TILES_ROWS(11)
AGLOW_TILES_ROWS(12)
AGLOW_TILES_ROWS(13)
AGLOW_TILES_ROWS(14)
