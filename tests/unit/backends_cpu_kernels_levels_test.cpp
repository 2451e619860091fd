// Products of few rows by weights of a few bits against the reference kernels, for all widths of vectors.
#ifdef __clang__  // the language of kernels

#include "unit/cpu_kernels.h"
// After what keeps the compiler quiet about vectors.
#include "backends/cpu/kernels/gemm/block_matvec.kernel.cpp"
#include "backends/cpu/kernels/gemm/level_matvec.kernel.cpp"
#include "backends/cpu/kernels/gemm/pack.h"

namespace aglow::cpu {
namespace {

AnyKernel findKernel(const std::string& name) {
  KERNEL(block_sums);
  KERNEL(level_bytes);
  WIDTHS(block_matvec_b4_m1);
  WIDTHS(block_matvec_b4_m2);
  WIDTHS(block_matvec_b4_m3);
  WIDTHS(block_matvec_b4_m4);
  WIDTHS(block_matvec_b8_m1);
  WIDTHS(block_matvec_b8_m2);
  WIDTHS(block_matvec_b8_m3);
  WIDTHS(block_matvec_b8_m4);
  WIDTHS(level_matvec_b4_m1);
  WIDTHS(level_matvec_b4_m2);
  WIDTHS(level_matvec_b4_m3);
  WIDTHS(level_matvec_b4_m4);
  WIDTHS(level_matvec_b8_m1);
  WIDTHS(level_matvec_b8_m2);
  WIDTHS(level_matvec_b8_m3);
  WIDTHS(level_matvec_b8_m4);
  return nullptr;
}

// A row of `special` elements has some that are not finite, or far from each other.
template <int W>
void checkLevels(uint64_t seed, bool bytes, bool special) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  Machine machine = randomMachine(rng, W);
  machine.bytes = bytes;
  const int64_t bits = rng.flip() ? 4 : 8, word = 32 / bits, panel = 2 * W;
  const int64_t block = word * rng.pick<int64_t>({1, 2, 3, 4, 16, 100}), m = rng.between(1, 4);
  const int64_t k = rng.pick<int64_t>({block, block * 3, rng.between(1, 600)}), n = rng.between(1, 80);
  const int64_t panels = ceilDiv(n, panel), blocks = ceilDiv(k, block);
  Tensor a = randomTensor(rng, {m, k});
  if (special) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    auto* values = reinterpret_cast<float*>(a.mutableData());
    for (int i = 0; i < 3; ++i) values[rng.between(0, m * k - 1)] = rng.pick<float>({kInf, -kInf, NAN, 1e-42F, 0});
  }
  std::vector<int64_t> levels(static_cast<size_t>(k * n));
  for (int64_t& level : levels) level = rng.between(0, (1 << bits) - 1);
  const bool one = rng.flip();
  const Tensor packed = packLevels(Tensor::fromInts(Type(ElemKind::UInt8, Shape{k, n}), levels), bits, panel);
  Attrs attrs = attrsOf("BlockMatMul");
  attrs.set("n", n);
  attrs.set("bits", bits);
  attrs.set("block", block);
  Tensor scales = randomTensor(rng, {panels, blocks, panel});
  const Tensor offsets = one ? f32(Shape{1}, {8}) : randomTensor(rng, {panels, blocks, panel});
  checkRow<W>(attrs, {a, packed, scales, offsets}, gemmRows(), findKernel, machine,
              2e-4 * static_cast<double>(1 << bits));
}

TEST(CpuLevels, AgreeWithTheReference) {
  for (const bool bytes : {false, true})
    for (const bool special : {false, true})
      for (uint64_t seed = 0; seed < 30; ++seed) {
        checkLevels<4>(seed, bytes, special);
        checkLevels<8>(seed + 1000, bytes, special);
        checkLevels<16>(seed + 2000, bytes, special);
      }
}

}  // namespace
}  // namespace aglow::cpu

#endif
