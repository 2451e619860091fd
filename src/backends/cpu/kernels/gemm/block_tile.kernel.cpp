// Products of bytes and of bf16 in register tiles, two rows by two columns at a time: for processors that multiply such
// blocks, which have vectors of 4 lanes.
#include "backends/cpu/kernels/gemm/tile.h"

namespace aglow::cpu {

template <int R>
AGLOW_INLINE int32_t byteBlocks(const TileDesc& d, void* const* p, int64_t begin, int64_t end,
                                Epilogue<4, int32_t>* epilogue, BlockDot<int32_t>* dot) {
  int32_t outside[kBlock];
  AGLOW_UNROLL for (int32_t& element : outside) element = static_cast<int32_t>(d.outside);
  const BlockProducts<int32_t> products{dot, outside, d.outside != 0 && d.reachesOut};
  return tileStep<4, R>(products, d, p, begin, end, epilogue);
}

}  // namespace aglow::cpu

#define AGLOW_BLOCK_TILES(R)                                                                                   \
  extern "C" int32_t aglow_byte_blocks_r##R##_w4(const aglow::cpu::TileDesc* d, void* const* p, int64_t begin, \
                                                 int64_t end, aglow::cpu::Epilogue<4, int32_t>* epilogue,      \
                                                 aglow::cpu::BlockDot<int32_t>* dot) {                         \
    return aglow::cpu::byteBlocks<R>(*d, p, begin, end, epilogue, dot);                                        \
  }                                                                                                            \
  extern "C" int32_t aglow_pair_blocks_r##R##_w4(const aglow::cpu::TileDesc* d, void* const* p, int64_t begin, \
                                                 int64_t end, aglow::cpu::Epilogue<4>* epilogue,               \
                                                 aglow::cpu::BlockDot<float>* dot) {                           \
    return aglow::cpu::tileStep<4, R>(aglow::cpu::BlockProducts<float>{dot}, *d, p, begin, end, epilogue);     \
  }

AGLOW_BLOCK_TILES(2)
AGLOW_BLOCK_TILES(3)
AGLOW_BLOCK_TILES(4)
AGLOW_BLOCK_TILES(5)
AGLOW_BLOCK_TILES(6)
AGLOW_BLOCK_TILES(7)
AGLOW_BLOCK_TILES(8)
AGLOW_BLOCK_TILES(9)
AGLOW_BLOCK_TILES(10)
AGLOW_BLOCK_TILES(11)
AGLOW_BLOCK_TILES(12)
