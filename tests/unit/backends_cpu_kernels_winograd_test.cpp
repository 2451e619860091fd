// Winograd's method against the reference kernels, for all widths of vectors, run by run and step by step; and the
// filters it is given against plain convolutions.
#ifdef __clang__  // the language of kernels

#include "unit/cpu_kernels.h"
// After what keeps the compiler quiet about vectors.
#include "backends/cpu/kernels/conv/winograd.kernel.cpp"
#include "backends/winograd.h"

extern "C" {
#define TILES(R)                                                                              \
  int32_t aglow_tiles_r##R##_w4(const aglow::cpu::TileDesc*, void* const*, int64_t, int64_t,  \
                                aglow::cpu::Epilogue<4>*);                                    \
  int32_t aglow_tiles_r##R##_w8(const aglow::cpu::TileDesc*, void* const*, int64_t, int64_t,  \
                                aglow::cpu::Epilogue<8>*);                                    \
  int32_t aglow_tiles_r##R##_w16(const aglow::cpu::TileDesc*, void* const*, int64_t, int64_t, \
                                 aglow::cpu::Epilogue<16>*);
TILES(1)
TILES(2)
TILES(3) TILES(4) TILES(5) TILES(6) TILES(7) TILES(8) TILES(9) TILES(10) TILES(11) TILES(12) TILES(13) TILES(14)
}

namespace aglow::cpu {
namespace {

AnyKernel findKernel(const std::string& name) {
  TILE_WIDTHS(tiles);
  WIDTHS(winograd2_r6);
  WIDTHS(winograd2_r14);
  WIDTHS(winograd4_r6);
  WIDTHS(winograd4_r14);
  WIDTHS(winograd2_input);
  WIDTHS(winograd2_output);
  WIDTHS(winograd4_input);
  WIDTHS(winograd4_output);
  return nullptr;
}

template <int W>
void checkWinograd(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  Machine machine = randomMachine(rng, W);
  const int64_t tile = rng.flip() ? 4 : 2, channels = rng.between(1, 2 * W + 3), outputs = rng.between(1, 3 * W);
  const bool pads = rng.between(0, 3) != 0, large = rng.flip();
  const int64_t h = rng.between(3, large ? 30 : 9), w = rng.between(3, large ? 40 : 9);
  if (large) machine.l2 = 1 << 20;
  const auto pad = [&] { return pads ? rng.between(0, 2) : 0; };
  Attrs attrs = attrsOf("WinogradConv");
  attrs.set("tile", tile);
  attrs.set("pads", std::vector<int64_t>{pad(), pad(), pad(), pad()});
  attrs.set("outputs", outputs);
  attrs.set("lanes", int64_t{W});
  const Tensor x = randomTensor(rng, {rng.between(1, 2), ceilDiv(channels, W), h, w, W});
  const Tensor filter = winogradFilter(randomTensor(rng, {outputs, channels, 3, 3}), static_cast<int>(tile), 2 * W);
  checkRow<W>(attrs, {x, filter}, convRows(), findKernel, machine, 1e-3);
}

TEST(CpuWinograd, Convolutions) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    checkWinograd<4>(seed);
    checkWinograd<8>(seed + 1000);
    checkWinograd<16>(seed + 2000);
  }
}

TEST(CpuWinograd, TileFollowsTheMap) {
  EXPECT_EQ(winogradTile(64, 64, 56, 56), 4);
  EXPECT_EQ(winogradTile(512, 512, 14, 14), 2);
  EXPECT_EQ(winogradTile(512, 512, 7, 7), 2);
  EXPECT_EQ(winogradTile(3, 64, 224, 224), 0);
  EXPECT_EQ(winogradTile(64, 64, 3, 56), 0);
}

}  // namespace
}  // namespace aglow::cpu

#endif
