// Products of matrices and convolutions in register tiles.
#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

template <int W, int R>
AGLOW_INLINE int32_t tiles(const TileDesc& d, void* const* p, int64_t begin, int64_t end, Epilogue<W>* epilogue) {
  const auto out = [&](Lanes<float, W> value, int64_t image, int64_t vector, int64_t row, int64_t column)
                       __attribute__((always_inline)) {
                         if (d.stored)
                           storeLanes(placeOf(p, d.y) + image * d.yImage + vector * d.yVector + column * W, value);
                         else if (d.matrix)
                           epilogue(value, p, 0, image, column, vector * W, smaller(W, d.columns - vector * W));
                         else
                           epilogue(value, p, image, vector, row * d.outWidth + column, 0, W);
                       };
  computeTiles<W, R>(d, placeOf(p, d.x), placeOf(p, d.w), placeOf(p, d.partial), begin, end, out);
  return kDone;
}

}  // namespace aglow::cpu

#define AGLOW_TILES(W, R)                                                                                  \
  extern "C" int32_t aglow_tiles_r##R##_w##W(const aglow::cpu::TileDesc* d, void* const* p, int64_t begin, \
                                             int64_t end, aglow::cpu::Epilogue<W>* epilogue) {             \
    return aglow::cpu::tiles<W, R>(*d, p, begin, end, epilogue);                                           \
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
