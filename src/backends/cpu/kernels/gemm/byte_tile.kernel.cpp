// Products of bytes in register tiles, four of them in each lane at a time.
#include "backends/cpu/kernels/gemm/matvec_desc.h"
#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

template <int W, int R>
AGLOW_INLINE int32_t byteTiles(const TileDesc& d, void* const* p, int64_t begin, int64_t end,
                               Epilogue<W, int32_t>* epilogue, Dot<W>* dot) {
  int32_t outside[kBlock];
  AGLOW_UNROLL for (int32_t& element : outside) element = static_cast<int32_t>(d.outside);
  const bool counts = d.outside != 0 && d.reachesOut;
  return tileStep<W, R>(ByteProducts<W>{outside, counts, dot}, d, p, begin, end, epilogue);
}

}  // namespace aglow::cpu

#define AGLOW_BYTE_TILES(W, R)                                                                                  \
  extern "C" int32_t aglow_byte_tiles_r##R##_w##W(const aglow::cpu::TileDesc* d, void* const* p, int64_t begin, \
                                                  int64_t end, aglow::cpu::Epilogue<W, int32_t>* epilogue,      \
                                                  aglow::cpu::Dot<W>* dot) {                                    \
    return aglow::cpu::byteTiles<W, R>(*d, p, begin, end, epilogue, dot);                                       \
  }
#define AGLOW_BYTE_TILES_ROWS(R) AGLOW_BYTE_TILES(4, R) AGLOW_BYTE_TILES(8, R) AGLOW_BYTE_TILES(16, R)

AGLOW_BYTE_TILES_ROWS(1)
AGLOW_BYTE_TILES_ROWS(2)
AGLOW_BYTE_TILES_ROWS(3)
AGLOW_BYTE_TILES_ROWS(4)
AGLOW_BYTE_TILES_ROWS(5)
AGLOW_BYTE_TILES_ROWS(6)
AGLOW_BYTE_TILES_ROWS(7)
AGLOW_BYTE_TILES_ROWS(8)
AGLOW_BYTE_TILES_ROWS(9)
AGLOW_BYTE_TILES_ROWS(10)
AGLOW_BYTE_TILES_ROWS(11)
AGLOW_BYTE_TILES_ROWS(12)
AGLOW_BYTE_TILES_ROWS(13)
AGLOW_BYTE_TILES_ROWS(14)

extern "C" int32_t aglow_fill_rows(const aglow::cpu::FillDesc* d, void* const* p, int64_t begin, int64_t end) {
  const int64_t last = aglow::cpu::smaller(end * d->unitRows, d->rows);
  for (int64_t row = begin * d->unitRows; row < last; ++row) {
    const auto* from = static_cast<const uint8_t*>(p[1]) + row * d->width;
    auto* to = static_cast<uint8_t*>(p[3]) + row * d->distance;
    for (int64_t i = 0; i < d->width; ++i) to[i] = from[i];
    for (int64_t i = d->width; i < d->filled; ++i) to[i] = 0;
  }
  return aglow::cpu::kDone;
}
