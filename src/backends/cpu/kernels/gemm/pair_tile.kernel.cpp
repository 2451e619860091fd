// Products of bf16 in register tiles, two of them in each lane at a time. Processors that multiply such pairs have
// vectors of 4 or 16 lanes.
#include "backends/cpu/kernels/gemm/tile.h"

#define AGLOW_PAIR_TILES(W, R)                                                                                  \
  extern "C" int32_t aglow_pair_tiles_r##R##_w##W(const aglow::cpu::TileDesc* d, void* const* p, int64_t begin, \
                                                  int64_t end, aglow::cpu::Epilogue<W>* epilogue,               \
                                                  aglow::cpu::PairDot<W>* dot) {                                \
    return aglow::cpu::tileStep<W, R>(aglow::cpu::PairProducts<W>{dot}, *d, p, begin, end, epilogue);           \
  }
#define AGLOW_PAIR_TILES_ROWS(R) AGLOW_PAIR_TILES(4, R) AGLOW_PAIR_TILES(16, R)

AGLOW_PAIR_TILES_ROWS(1)
AGLOW_PAIR_TILES_ROWS(2)
AGLOW_PAIR_TILES_ROWS(3)
AGLOW_PAIR_TILES_ROWS(4)
AGLOW_PAIR_TILES_ROWS(5)
AGLOW_PAIR_TILES_ROWS(6)
AGLOW_PAIR_TILES_ROWS(7)
AGLOW_PAIR_TILES_ROWS(8)
AGLOW_PAIR_TILES_ROWS(9)
AGLOW_PAIR_TILES_ROWS(10)
AGLOW_PAIR_TILES_ROWS(11)
AGLOW_PAIR_TILES_ROWS(12)
AGLOW_PAIR_TILES_ROWS(13)
AGLOW_PAIR_TILES_ROWS(14)
