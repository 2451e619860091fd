// Products and convolutions on registers of matrices against the reference kernels.
#if defined(__clang__) && defined(__x86_64__)  // the language of kernels, and the processors that have them

#include "unit/cpu_kernels.h"
#include "unit/matrix_registers.h"
// After what keeps the compiler quiet about vectors, and what stands for the registers.
#include "backends/cpu/kernels/conv/window_rows.kernel.cpp"
#include "backends/cpu/kernels/gemm/matrix_tile.kernel.cpp"
#include "backends/cpu/kernels/gemm/pack.h"

namespace aglow::cpu {
namespace {

constexpr int kWidth = 16;

int32_t permitted(const void*, void* const*, int64_t, int64_t) { return kDone; }

AnyKernel findKernel(const std::string& name) {
  if (name == "matrix_permission") return reinterpret_cast<AnyKernel>(permitted);
  KERNEL(matrix_bytes_w16);
  KERNEL(matrix_halves_w16);
  KERNEL(window_bytes_w16);
  KERNEL(window_halves_w16);
  return nullptr;
}

Machine machineWithMatrices(Rng& rng) {
  Machine machine = randomMachine(rng, kWidth);
  machine.halves = machine.matrix = true;
  return machine;
}

// Of f32 that are bf16: eighths.
Tensor randomHalves(Rng& rng, Shape shape, ElemKind kind) {
  constexpr double kEighth = 0.125;
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = kEighth * static_cast<double>(rng.between(-8, 8));
  return Tensor::fromDoubles(Type(kind, std::move(shape)), values);
}

// The sums of eighths are exact, whatever their order.
void check(const Attrs& attrs, const Tensor& x, const Tensor& weights, std::span<const KernelRow> rows,
           const Machine& machine) {
  if (x.type().kind() == ElemKind::BFloat16)
    checkRow<kWidth>(attrs, {x, weights}, rows, findKernel, machine, 0);
  else
    checkRow<kWidth, int32_t>(attrs, {x, weights}, rows, findKernel, machine, 0);
}

void checkProduct(uint64_t seed, bool halves) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = machineWithMatrices(rng);
  const int64_t m = rng.between(8, 90), k = (halves ? 32 : 64) * rng.between(1, 5), n = rng.between(1, 150);
  Attrs attrs = attrsOf("NarrowMatMul");
  attrs.set("n", n);
  const Tensor b = halves ? randomHalves(rng, {k, n}, ElemKind::Float32) : randomBytes(rng, {k, n}, ElemKind::Int32);
  const Tensor a = halves ? randomHalves(rng, {m, k}, ElemKind::BFloat16) : randomBytes(rng, {m, k});
  check(attrs, a, packNarrowMatrix(b, 2 * kWidth), gemmRows(), machine);
}

// Large enough to be worth it; channels that end within a block, and depths that end within a step.
void checkConv(uint64_t seed, bool halves) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Machine machine = machineWithMatrices(rng);
  const bool pads = rng.flip();
  const int64_t kh = rng.between(1, 3), kw = rng.between(1, 3), dy = rng.between(1, 2), dx = rng.between(1, 2);
  const int64_t channels = rng.between(40, 90) / 2 * 2,
                outputs = ceilDiv(1 << 14, channels * kh * kw) + rng.between(0, 9);
  const int64_t images = 3, h = rng.between(8, 11), w = rng.between(24, 36);
  const auto pad = [&] { return pads ? rng.between(0, 3) : 0; };
  Attrs attrs = attrsOf("NarrowConv");
  attrs.set("strides", std::vector<int64_t>{1, kw == 1 ? 1 : rng.between(1, 2)});
  attrs.set("pads", std::vector<int64_t>{pad(), pad(), pad(), pad()});
  attrs.set("dilations", std::vector<int64_t>{dy, dx});
  attrs.set("group", int64_t{1});
  attrs.set("outputs", outputs);
  attrs.set("lanes", int64_t{kWidth});
  attrs.set("outside", halves || rng.flip() ? 0 : rng.between(1, 255));
  const Shape image{images, ceilDiv(channels, kWidth), h, w, kWidth}, filter{outputs, channels, kh, kw};
  const Tensor x = halves ? randomHalves(rng, image, ElemKind::BFloat16) : randomBytes(rng, image);
  const Tensor weights =
      halves ? randomHalves(rng, filter, ElemKind::Float32) : randomBytes(rng, filter, ElemKind::Int32);
  check(attrs, x, packNarrowFilter(weights, 2 * kWidth), convRows(), machine);
}

TEST(CpuMatrix, Products) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    checkProduct(seed, false);
    checkProduct(seed, true);
  }
}

TEST(CpuMatrix, Convolutions) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    checkConv(seed, false);
    checkConv(seed, true);
  }
}

}  // namespace
}  // namespace aglow::cpu

#endif
