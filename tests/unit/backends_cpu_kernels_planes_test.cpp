// Convolutions of small groups and pools of blocked maps against the reference kernels, for all widths of vectors.
#ifdef __clang__  // the language of kernels

#include "unit/cpu_kernels.h"
// After what keeps the compiler quiet about vectors.
#include <limits>

#include "backends/cpu/kernels/conv/plane.kernel.cpp"

namespace aglow::cpu {
namespace {

AnyKernel findKernel(const std::string& name) {
#define ROWS(NAME)  \
  WIDTHS(NAME##_r1) \
  WIDTHS(NAME##_r2) \
  WIDTHS(NAME##_r3) WIDTHS(NAME##_r4) WIDTHS(NAME##_r5) WIDTHS(NAME##_r6) WIDTHS(NAME##_r7) WIDTHS(NAME##_r8)
  ROWS(depthwise)
  ROWS(byte_depthwise)
  ROWS(grouped)
  ROWS(max_planes)
  ROWS(max_planes_u8)
  ROWS(max_planes_i8)
  ROWS(mean_planes)
  return nullptr;
}

template <int W>
void checkPlanes(uint64_t seed, int& cuts) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const int64_t kh = rng.between(1, 4), kw = rng.between(1, 4), dy = rng.between(1, 2), dx = rng.between(1, 2);
  const int64_t sy = rng.between(1, 3), sx = rng.between(1, 3), h = rng.between(kh * dy, 12),
                w = rng.between(kw * dx, 40);
  const bool pads = rng.flip();
  const auto pad = [&](int64_t most) { return pads ? rng.between(0, most) : 0; };
  const std::vector<int64_t> begin{pad(kh), pad(kw)}, end{pad(kh), pad(kw)};
  Tensor x = randomTensor(rng, {rng.between(1, 2), rng.between(1, 3), h, w, W});
  Attrs depthwise = attrsOf("DepthwiseConv");
  depthwise.set("strides", std::vector<int64_t>{sy, sx});
  depthwise.set("pads", std::vector<int64_t>{begin[0], begin[1], end[0], end[1]});
  depthwise.set("dilations", std::vector<int64_t>{dy, dx});
  for (int64_t members = 1; members <= W; members *= 2) {
    const Tensor filter = randomTensor(rng, {x.type().dim(1), kh, kw, members, W});
    checkRow<W>(depthwise, {x, filter}, convRows(), findKernel, machine, 1e-4, &cuts);
  }
  Attrs bytes = attrsOf("ByteDepthwiseConv");
  for (const char* name : {"strides", "pads", "dilations"}) bytes.set(name, depthwise.ints(name));
  bytes.set("outside", rng.flip() ? 0 : rng.between(1, 255));
  checkRow<W, int32_t>(
      bytes, {randomBytes(rng, x.type().shape()), randomBytes(rng, {x.type().dim(1), kh, kw, W}, ElemKind::Int8)},
      convRows(), findKernel, machine, 0);

  if (seed % 3 == 0) {
    std::vector<double> values = x.doubles();
    values[values.size() / 2] = std::numeric_limits<double>::quiet_NaN();
    x = f32(x.type().shape(), values);
  }
  for (const char* op : {"MaxPool", "AvgPool"}) {
    Attrs pool = attrsOf(op);
    pool.set("kernel", std::vector<int64_t>{kh, kw, 1});
    pool.set("strides", std::vector<int64_t>{sy, sx, 1});
    pool.set("pads", std::vector<int64_t>{begin[0], begin[1], 0, end[0], end[1], 0});
    pool.set("dilations", std::vector<int64_t>{dy, dx, 1});
    if (std::string_view(op) == "AvgPool") pool.set("count_include_pad", int64_t{rng.flip()});
    checkRow<W>(pool, {x}, convRows(), findKernel, machine);
    if (std::string_view(op) == "AvgPool") continue;
    checkRow<W, uint8_t>(pool, {randomBytes(rng, x.type().shape())}, convRows(), findKernel, machine, 0);
    checkRow<W, int8_t>(pool, {randomBytes(rng, x.type().shape(), ElemKind::Int8)}, convRows(), findKernel, machine, 0);
  }
}

TEST(CpuPlanes, SmallGroupsAndPools) {
  int cuts = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    checkPlanes<4>(seed, cuts);
    checkPlanes<8>(seed + 1000, cuts);
    checkPlanes<16>(seed + 2000, cuts);
  }
  EXPECT_GT(cuts, 100);
}

}  // namespace
}  // namespace aglow::cpu

#endif
