// Register tiles against the reference kernels: convolutions on blocked and planar maps and products of matrices, for
// all widths of vectors, in any order of the units.
#ifdef __clang__  // the language of kernels

#include "unit/cpu_kernels.h"

#include <fmt/format.h>

#include "kernels/conv/conv_plan.h"
#include "kernels/gemm/pack.h"
#include "kernels/gemm/tile.kernel.cpp"
#include "kernels/gemm/tile_plan.h"

namespace aglow::cpu {
namespace {

AnyKernel findTiles(const std::string& name) {
#define ROWS(R)                                                                              \
  if (name == "tiles_r" #R "_w4") return reinterpret_cast<AnyKernel>(aglow_tiles_r##R##_w4); \
  if (name == "tiles_r" #R "_w8") return reinterpret_cast<AnyKernel>(aglow_tiles_r##R##_w8); \
  if (name == "tiles_r" #R "_w16") return reinterpret_cast<AnyKernel>(aglow_tiles_r##R##_w16);
  ROWS(1)
  ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12) ROWS(13) ROWS(14)
#undef ROWS
      return nullptr;
}

// Small caches let small problems have passes, groups of tiles and prefetches.
Machine machineOf(int lanes, Rng& rng) {
  return {.lanes = lanes,
          .registers = rng.flip() ? 32 : 16,
          .fma = true,
          .l2 = rng.pick<int64_t>({1 << 11, 1 << 14, 1 << 20})};
}

template <int W>
void checkSame(const KernelPlan& plan, const std::vector<const float*>& inputs, const std::vector<float>& result) {
  EXPECT_EQ(runPlan<W>(plan, findTiles, inputs, 1), result);
  EXPECT_EQ(runPlan<W>(plan, findTiles, inputs, 3), result);
}

template <int W>
void checkConv(uint64_t seed) {
  Rng rng(seed);
  const Machine machine = machineOf(W, rng);
  ConvShape s;
  s.planar = rng.between(0, 3) == 0;
  s.group = !s.planar && rng.between(0, 3) == 0 ? 2 : 1;
  s.images = rng.between(1, 2);
  s.channels = s.group > 1 ? s.group * W * rng.between(1, 2) : rng.between(1, s.planar ? 4 : 3 * W);
  s.outputs = s.group > 1 ? s.group * 2 * W * rng.between(1, 2) : rng.between(1, 5 * W);
  s.kh = rng.between(1, 3), s.kw = rng.between(1, 4);
  s.sy = rng.between(1, 2), s.sx = rng.between(1, 3);
  s.dy = rng.between(1, 2), s.dx = rng.between(1, 2);
  const bool pads = rng.flip();
  s.py = pads ? rng.between(0, 3) : 0, s.px = pads ? rng.between(0, 3) : 0;
  const int64_t bottom = pads ? rng.between(0, 3) : 0, right = pads ? rng.between(0, 3) : 0;
  s.height = rng.between(s.kh * s.dy, 9), s.width = rng.between(s.kw * s.dx, 33);

  const Tensor x = randomTensor(rng, {s.images, s.channels, s.height, s.width});
  const Tensor filter = randomTensor(rng, {s.outputs, s.channels / s.group, s.kh, s.kw});
  Attrs attrs = attrsOf("Conv");
  attrs.set("strides", std::vector<int64_t>{s.sy, s.sx});
  attrs.set("pads", std::vector<int64_t>{s.py, s.px, bottom, right});
  attrs.set("dilations", std::vector<int64_t>{s.dy, s.dx});
  attrs.set("group", s.group);
  const Tensor want = runOne(attrs, {x, filter});
  s.outHeight = want.type().dim(2), s.outWidth = want.type().dim(3);
  SCOPED_TRACE(fmt::format("seed {}, {} * {}, strides {} {}, lanes {}", seed, x.type().text(), filter.type().text(),
                           s.sy, s.sx, W));

  const KernelPlan plan = planBlockedConv(s, machine);
  const std::vector<float> input = s.planar ? floatsOf(x) : toBlocked(x, W);
  const std::vector<float> packed = floatsOf(packFilter(filter, 2 * W));
  const std::vector<const float*> inputs{input.data(), packed.data()};
  const std::vector<float> got = runPlan<W>(plan, findTiles, inputs, 0);
  EXPECT_LT(blockedError(got, want, W), 1e-4);
  checkSame<W>(plan, inputs, got);
}

TEST(CpuTiles, Convolutions) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    checkConv<4>(seed);
    checkConv<8>(seed + 1000);
    checkConv<16>(seed + 2000);
  }
}

}  // namespace
}  // namespace aglow::cpu

#endif
