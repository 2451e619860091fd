// Register tiles against the reference kernels, for all widths of vectors.
#ifdef __clang__  // the language of kernels

#include "unit/cpu_kernels.h"
// After what keeps the compiler quiet about vectors.
#include "backends/cpu/kernels/gemm/block_tile.kernel.cpp"
#include "backends/cpu/kernels/gemm/byte_pack.kernel.cpp"
#include "backends/cpu/kernels/gemm/byte_tile.kernel.cpp"
#include "backends/cpu/kernels/gemm/dot.kernel.cpp"
#include "backends/cpu/kernels/gemm/matvec.kernel.cpp"
#include "backends/cpu/kernels/gemm/outer.kernel.cpp"
#include "backends/cpu/kernels/gemm/pack.h"
#include "backends/cpu/kernels/gemm/rows.kernel.cpp"
#include "backends/cpu/kernels/gemm/tile.kernel.cpp"

namespace aglow::cpu {
namespace {

AnyKernel findKernel(const std::string& name) {
  TILE_WIDTHS(tiles);
  TILE_WIDTHS(byte_tiles);
  BLOCK_TILES(byte_blocks);
  KERNEL(fill_rows);
  WIDTHS(pack_bytes);
  WIDTHS(row_starts);
  WIDTHS(matvec_m1);
  WIDTHS(matvec_m2);
  WIDTHS(matvec_m3);
  WIDTHS(matvec_m4);
  WIDTHS(dot);
  WIDTHS(outer);
  WIDTHS(rows_r1);
  WIDTHS(rows_r2);
  WIDTHS(rows_r3);
  KERNEL(rows_r4_w16);
  KERNEL(rows_r5_w16);
  KERNEL(rows_r6_w16);
  WIDTHS(pack_panels);
  WIDTHS(spread_rows);
  return nullptr;
}

template <int W>
void checkConv(uint64_t seed, int& cuts) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const bool planar = rng.between(0, 3) == 0, pads = rng.flip();
  const int64_t group = !planar && rng.between(0, 3) == 0 ? 2 : 1;
  const int64_t channels = group > 1 ? W * rng.between(1, 2) : rng.between(1, planar ? 4 : 3 * W);
  const int64_t outputs = group > 1 ? group * 2 * W * rng.between(1, 2) : rng.between(1, 5 * W);
  const int64_t kh = rng.between(1, 3), kw = rng.between(1, 4), dy = rng.between(1, 2), dx = rng.between(1, 2);
  const int64_t images = rng.between(1, 2), h = rng.between(kh * dy, 9), w = rng.between(kw * dx, 33);
  const auto pad = [&] { return pads ? rng.between(0, 3) : 0; };
  Attrs attrs = attrsOf("BlockedConv");
  attrs.set("strides", std::vector<int64_t>{rng.between(1, 2), rng.between(1, 3)});
  attrs.set("pads", std::vector<int64_t>{pad(), pad(), pad(), pad()});
  attrs.set("dilations", std::vector<int64_t>{dy, dx});
  attrs.set("group", group);
  attrs.set("outputs", outputs);
  attrs.set("lanes", int64_t{W});
  const Tensor x = planar ? randomTensor(rng, {images, channels, h, w})
                          : randomTensor(rng, {images, ceilDiv(group * channels, W), h, w, W});
  const Tensor filter = packFilter(randomTensor(rng, {outputs, channels, kh, kw}), 2 * W);
  checkRow<W>(attrs, {x, filter}, convRows(), findKernel, machine, 1e-4, &cuts);
}

// Blocks of all lanes, or of four channels.
template <int W>
void checkByteConv(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const bool few = rng.between(0, 3) == 0, pads = rng.flip();
  const int64_t group = !few && rng.between(0, 3) == 0 ? 2 : 1;
  const int64_t channels = group > 1 ? W * rng.between(1, 2) : rng.between(1, few ? 4 : 3 * W);
  const int64_t outputs = group > 1 ? group * 2 * W * rng.between(1, 2) : rng.between(1, 5 * W);
  const int64_t kh = rng.between(1, 3), kw = rng.between(1, 4), dy = rng.between(1, 2), dx = rng.between(1, 2);
  const int64_t h = rng.between(kh * dy, 9), w = rng.between(kw * dx, 33), block = few ? 4 : W;
  const auto pad = [&] { return pads ? rng.between(0, 3) : 0; };
  Attrs attrs = attrsOf("NarrowConv");
  attrs.set("strides", std::vector<int64_t>{rng.between(1, 2), rng.between(1, 3)});
  attrs.set("pads", std::vector<int64_t>{pad(), pad(), pad(), pad()});
  attrs.set("dilations", std::vector<int64_t>{dy, dx});
  attrs.set("group", group);
  attrs.set("outputs", outputs);
  attrs.set("lanes", int64_t{W});
  attrs.set("outside", rng.flip() ? 0 : rng.between(1, 255));
  const Tensor x = randomBytes(rng, {rng.between(1, 2), ceilDiv(group * channels, block), h, w, block});
  const Tensor filter = packNarrowFilter(randomBytes(rng, {outputs, channels, kh, kw}, ElemKind::Int32), 2 * W);
  checkRow<W, int32_t>(attrs, {x, filter}, convRows(), findKernel, machine, 0);
}

template <int W>
void checkByteProduct(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const int64_t m = rng.between(1, 40), k = rng.pick<int64_t>({1024, 1101, rng.between(1, 70), rng.between(1, 70)}),
                n = rng.between(1, 150);
  const Tensor a = rng.flip() ? randomBytes(rng, {m, k}) : randomBytes(rng, {2, rng.between(1, 9), k});
  Attrs attrs = attrsOf("NarrowMatMul");
  attrs.set("n", n);
  checkRow<W, int32_t>(attrs, {a, packNarrowMatrix(randomBytes(rng, {k, n}, ElemKind::Int32), 2 * W)}, gemmRows(),
                       findKernel, machine, 0);
}

// Leading axes of both operands of a product.
using Axes = std::pair<std::vector<int64_t>, std::vector<int64_t>>;
Axes randomAxes(Rng& rng) {
  const std::vector<Axes> leading{
      {{}, {}}, {{3}, {}}, {{}, {3}}, {{2, 3}, {2, 3}}, {{2, 1}, {3}}, {{2, 3}, {2, 1}}, {{2, 1, 3}, {2, 2, 1}}};
  return rng.pick(leading);
}

// Both operands known when code runs, with all kinds of offsets.
template <int W>
void checkBytesByBytes(uint64_t seed, int& cuts) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const int64_t m = rng.between(1, 40), n = rng.between(1, 99),
                k = rng.pick<int64_t>({4 * rng.between(1, 40), rng.between(1, 70), 1101});
  const ElemKind kind = rng.flip() ? ElemKind::UInt8 : ElemKind::Int8;
  auto [as, bs] = randomAxes(rng);
  Attrs attrs = attrsOf("ByteMatMul");
  attrs.set("a_offset", rng.pick<int64_t>({0, 0, rng.between(1, 255)}));
  attrs.set("b_offset", rng.pick<int64_t>({0, 128, rng.between(-128, 255)}));
  const bool transposed = rng.flip();
  attrs.set("transposed", int64_t{transposed});
  as.insert(as.end(), {m, k});
  bs.insert(bs.end(), {transposed ? n : k, transposed ? k : n});
  checkRow<W, int32_t>(attrs, {randomBytes(rng, Shape(as)), randomBytes(rng, Shape(bs), kind)}, gemmRows(), findKernel,
                       machine, 0, &cuts);
}

TEST(CpuTiles, BytesByBytes) {
  int cuts = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    checkBytesByBytes<4>(seed, cuts);
    checkBytesByBytes<8>(seed + 1000, cuts);
    checkBytesByBytes<16>(seed + 2000, cuts);
  }
  EXPECT_GT(cuts, 10);
}

TEST(CpuTiles, Bytes) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    checkByteConv<4>(seed);
    checkByteConv<8>(seed + 1000);
    checkByteConv<16>(seed + 2000);
    checkByteProduct<4>(seed);
    checkByteProduct<8>(seed + 1000);
    checkByteProduct<16>(seed + 2000);
  }
}

TEST(CpuTiles, Convolutions) {
  int cuts = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    checkConv<4>(seed, cuts);
    checkConv<8>(seed + 1000, cuts);
    checkConv<16>(seed + 2000, cuts);
  }
  EXPECT_GT(cuts, 50);
}

template <int W>
void checkPacked(uint64_t seed, int& cuts) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const int64_t m = rng.between(1, 40), k = rng.pick<int64_t>({1024, 1100, rng.between(1, 70), rng.between(1, 70)}),
                n = rng.between(1, 150);
  const Tensor a = rng.flip() ? randomTensor(rng, {m, k}) : randomTensor(rng, {2, rng.between(1, 9), k});
  Attrs attrs = attrsOf("PackedMatMul");
  attrs.set("n", n);
  checkRow<W>(attrs, {a, packMatrix(randomTensor(rng, {k, n}), 2 * W)}, gemmRows(), findKernel, machine, 1e-4, &cuts);
}

template <int W>
void checkProduct(uint64_t seed, int& cuts) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const int64_t m = rng.between(1, 40), k = rng.between(1, 70),
                n = rng.pick<int64_t>({1, W * rng.between(1, 6), rng.between(1, 99), rng.between(1, 99)});
  auto [as, bs] = randomAxes(rng);
  as.insert(as.end(), {m, k});
  bs.insert(bs.end(), {k, n});
  const Tensor a = randomTensor(rng, Shape(as)), b = randomTensor(rng, Shape(bs));
  checkRow<W>(attrsOf("MatMul"), {a, b}, gemmRows(), findKernel, machine, 1e-4, &cuts);
}

TEST(CpuTiles, Products) {
  int cuts = 0;
  for (uint64_t seed = 0; seed < 48; ++seed) {
    checkPacked<4>(seed, cuts);
    checkPacked<8>(seed + 1000, cuts);
    checkPacked<16>(seed + 2000, cuts);
    checkProduct<4>(seed, cuts);
    checkProduct<8>(seed + 1000, cuts);
    checkProduct<16>(seed + 2000, cuts);
  }
  EXPECT_GT(cuts, 50);
}

template <int W>
void checkTransposed(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const int64_t k = rng.between(1, 600), m = rng.between(1, 40), n = W * rng.between(1, 5);
  const bool many = rng.flip();
  checkRow<W>(
      attrsOf("TransposedMatMul"),
      {randomTensor(rng, many ? Shape{3, k, m} : Shape{k, m}), randomTensor(rng, many ? Shape{3, k, n} : Shape{k, n})},
      gemmRows(), findKernel, machine, 1e-3);
}

template <int W>
void checkRows(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const int64_t m = rng.between(1, 40), k = rng.pick<int64_t>({1024, rng.between(1, 70), rng.between(1, 5000)}),
                n = rng.between(1, 150);
  const Tensor a = rng.flip() ? randomTensor(rng, {m, k}) : randomTensor(rng, {2, rng.between(1, 5), k});
  Attrs attrs = attrsOf("PackedMatMul");
  attrs.set("n", n);
  checkRow<W>(attrs, {a, randomTensor(rng, {n, k, 1})}, gemmRows(), findKernel, machine, 1e-3);
}

template <int W>
void checkTaps(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = randomMachine(rng, W);
  const bool planar = rng.flip(), pads = rng.flip();
  const int64_t channels = rng.between(1, planar ? 12 : 3 * W), kh = rng.between(1, 3), kw = rng.between(1, 4);
  const int64_t sy = rng.between(1, 2), sx = rng.between(1, 3), dy = rng.between(1, 2), dx = rng.between(1, 2);
  const int64_t images = rng.between(1, 3), height = rng.between(1, 9), width = rng.between(1, 40);
  const auto pad = [&] { return pads ? rng.between(0, 3) : 0; };
  const std::vector<int64_t> around{pad(), pad(), pad(), pad()};
  const int64_t h = std::max<int64_t>((height - 1) * sy + (kh - 1) * dy + 1 - around[0] - around[2], 1);
  const int64_t w = std::max<int64_t>((width - 1) * sx + (kw - 1) * dx + 1 - around[1] - around[3], 1);
  Attrs attrs = attrsOf("TapProducts");
  attrs.set("kernel", std::vector<int64_t>{kh, kw});
  attrs.set("strides", std::vector<int64_t>{sy, sx});
  attrs.set("pads", around);
  attrs.set("dilations", std::vector<int64_t>{dy, dx});
  attrs.set("channels", channels);
  const Tensor x =
      planar ? randomTensor(rng, {images, channels, h, w}) : randomTensor(rng, {images, ceilDiv(channels, W), h, w, W});
  const Tensor g = randomTensor(rng, {images, rng.between(1, 5), height, width, W});
  checkRow<W>(attrs, {x, g}, gemmRows(), findKernel, machine, 1e-3);
}

TEST(CpuTiles, RowsByRows) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    checkRows<4>(seed);
    checkRows<8>(seed + 1000);
    checkRows<16>(seed + 2000);
  }
}

TEST(CpuTiles, OuterProducts) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    checkTransposed<4>(seed);
    checkTransposed<8>(seed + 1000);
    checkTransposed<16>(seed + 2000);
    checkTaps<4>(seed);
    checkTaps<8>(seed + 1000);
    checkTaps<16>(seed + 2000);
  }
}

// Errors of rounding add up where all products are positive; they stay those of short sums, whatever the depth.
template <int W>
void checkLongSums() {
  constexpr int64_t kDepth = 20000, kColumns = 3 * W;
  constexpr double kClose = 3e-7 * kDepth / 4;
  Rng rng(W);
  const auto positive = [&](const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(shape.elements()));
    for (double& value : values) value = rng.real(0, 1);
    return f32(shape, values);
  };
  const Tensor b = positive({kDepth, kColumns});
  for (const int64_t m : {1, 3, 20, 70}) {
    const Tensor a = positive({m, kDepth});
    Attrs attrs = attrsOf("PackedMatMul");
    attrs.set("n", kColumns);
    checkRow<W>(attrs, {a, packMatrix(b, 2 * W)}, gemmRows(), findKernel, {.lanes = W}, kClose);
    checkRow<W>(attrsOf("MatMul"), {a, b}, gemmRows(), findKernel, {.lanes = W}, kClose);
    checkRow<W>(attrsOf("MatMul"), {a, positive({kDepth, 1})}, gemmRows(), findKernel, {.lanes = W}, kClose);
  }
  const int64_t channels = kDepth / 9 / W * W;
  Attrs conv = attrsOf("BlockedConv");
  conv.set("strides", std::vector<int64_t>{1, 1});
  conv.set("pads", std::vector<int64_t>{0, 0, 0, 0});
  conv.set("dilations", std::vector<int64_t>{1, 1});
  conv.set("outputs", kColumns);
  conv.set("lanes", int64_t{W});
  checkRow<W>(conv, {positive({1, channels / W, 3, 5, W}), packFilter(positive({kColumns, channels, 3, 3}), 2 * W)},
              convRows(), findKernel, {.lanes = W}, kClose);
}

TEST(CpuTiles, LongSumsStayExact) {
  checkLongSums<4>();
  checkLongSums<8>();
  checkLongSums<16>();
}

TEST(CpuTiles, Emptiness) {
  Rng rng(1);
  Attrs attrs = attrsOf("PackedMatMul");
  attrs.set("n", int64_t{20});
  for (const int64_t m : {0, 2, 20})
    checkRow<8>(attrs, {randomTensor(rng, {m, 0}), Tensor(Type(ElemKind::Float32, {2, 0, 16}))}, gemmRows(), findKernel,
                {.lanes = 8});
  checkRow<8>(attrs, {randomTensor(rng, {0, 5}), randomTensor(rng, {2, 5, 16})}, gemmRows(), findKernel, {.lanes = 8});
}

}  // namespace
}  // namespace aglow::cpu

#endif
