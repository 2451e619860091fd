// Single layers of well-known networks on this machine's CPU kernels, with a bias and a ReLU on top: GFLOP/s, and the
// share of what the multipliers of one core could do. The counters are of the best run, with warm weights.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <time.h>

#include <algorithm>
#include <functional>

#include "backends/cpu/kernels/gemm/pack.h"
#include "backends/winograd.h"
#include "compile/compile.h"
#include "graph/builder.h"
#include "support/rng.h"
#include "support/sizes.h"

#if defined(AGLOW_LLVM) && defined(__clang__) && defined(__x86_64__)

namespace aglow {
namespace {

constexpr int64_t kLanes = 16;

Tensor randomTensor(const Shape& shape) {
  Rng rng(1);
  Tensor tensor(Type(ElemKind::Float32, shape));
  auto* values = reinterpret_cast<float*>(tensor.mutableData());
  for (int64_t i = 0; i < shape.elements(); ++i) values[i] = static_cast<float>(rng.real(-1, 1));
  return tensor;
}

// The processor time of this thread, so that other programs do not count; or the time that passes.
double seconds(bool ofThread) {
  timespec now{};
  clock_gettime(ofThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Two floating-point operations per lane and multiplication, with enough of them under way.
__attribute__((target("avx512f"))) double peakFlops() {
  using Vector = float __attribute__((ext_vector_type(16)));
  constexpr int kChains = 24, kRounds = 200000;
  double best = 0;
  for (int attempt = 0; attempt < 10; ++attempt) {
    Vector sums[kChains] = {}, x = 1.0001F, y = 0.9F;
    asm volatile("" : "+v"(x), "+v"(y));
    const double start = seconds(true);
    for (int round = 0; round < kRounds; ++round) {
#pragma unroll
      for (Vector& sum : sums) sum = __builtin_elementwise_fma(sum, x, y);
    }
    for (Vector& sum : sums) asm volatile("" : "+v"(sum));
    best = std::max(best, 2. * 16 * kChains * kRounds / (seconds(true) - start));
  }
  return best;
}

// Compiles what `build` makes of one input, and runs it.
void runLayer(benchmark::State& state, const Shape& input, double flops,
              const std::function<Value(Builder&, Value)>& build) {
  if (!__builtin_cpu_supports("avx512f")) return state.SkipWithError("needs AVX-512");
  auto module = std::make_unique<Module>();
  Builder b(*module->addFunction("layer"));
  const Value product = build(b, b.input("x", Type(ElemKind::Float32, input)));
  const bool blocked = product.type().rank() == 5;
  const Shape bias = blocked ? Shape{product.type().dim(1), 1, 1, kLanes} : Shape{product.type().shape().dims().back()};
  b.output("y", b.relu(b.add(product, b.constant(randomTensor(bias)))));
  CompileOptions options;
  options.backend = "cpu";
  auto compiled = compileModule(std::move(module), options);
  if (!compiled.ok()) return state.SkipWithError("the layer does not compile");
  auto executable = load(*std::move(compiled), {.threads = static_cast<int>(state.range(0))});
  if (!executable.ok()) return state.SkipWithError(executable.error().text().c_str());
  const Tensor x = randomTensor(input);
  const Tensor y((*executable)->outputs()[0].type);
  const TensorRef in = x.ref(), out = y.ref();
  double best = 1e9;
  for (auto _ : state) {
    const double start = seconds(state.range(0) == 1);
    const Status done = (*executable)->run({&in, 1}, {&out, 1});
    best = std::min(best, seconds(state.range(0) == 1) - start);
    if (!done.ok()) return state.SkipWithError(done.error().text().c_str());
  }
  static const double kPeak = peakFlops();
  state.counters["best_us"] = best * 1e6;
  state.counters["GFLOP/s"] = flops / best * 1e-9;
  state.counters["%peak"] = 100 * flops / best / kPeak;
}

struct Layer {
  const char* network;
  int64_t channels, outputs, size, kernel, stride;
};

// Planar for images, by Winograd's method where that is chosen.
void convLayer(benchmark::State& state, const Layer& l) {
  const bool planar = l.channels < kLanes;
  const int64_t pad = l.kernel / 2, out = (l.size + 2 * pad - l.kernel) / l.stride + 1;
  const int tile = l.kernel == 3 && l.stride == 1 ? winogradTile(l.channels, l.outputs, out, out) : 0;
  const Tensor filter = randomTensor({l.outputs, l.channels, l.kernel, l.kernel});
  const Shape input =
      planar ? Shape{1, l.channels, l.size, l.size} : Shape{1, ceilDiv(l.channels, kLanes), l.size, l.size, kLanes};
  const double flops = 2. * static_cast<double>(l.channels * l.outputs * l.kernel * l.kernel * out * out);
  const std::vector<int64_t> pads(4, pad), strides(2, l.stride);
  runLayer(state, input, flops, [&](Builder& b, Value x) {
    if (tile > 0)
      return b.winogradConv(x, b.constant(winogradFilter(filter, tile, 2 * kLanes)),
                            {.tile = tile, .pads = pads, .outputs = l.outputs, .lanes = kLanes});
    return b.blockedConv(x, b.constant(cpu::packFilter(filter, 2 * kLanes)),
                         {.strides = strides, .pads = pads, .outputs = l.outputs, .lanes = kLanes});
  });
}

void depthwiseLayer(benchmark::State& state, const Layer& l) {
  const int64_t pad = l.kernel / 2, out = (l.size + 2 * pad - l.kernel) / l.stride + 1;
  const Tensor filter = cpu::packFilter(randomTensor({l.channels, 1, l.kernel, l.kernel}), kLanes);
  const double flops = 2. * static_cast<double>(l.channels * l.kernel * l.kernel * out * out);
  runLayer(state, {1, ceilDiv(l.channels, kLanes), l.size, l.size, kLanes}, flops, [&](Builder& b, Value x) {
    return b.depthwiseConv(x, b.constant(filter),
                           {.strides = std::vector<int64_t>(2, l.stride), .pads = std::vector<int64_t>(4, pad)});
  });
}

void matrixLayer(benchmark::State& state, int64_t m, int64_t k, int64_t n) {
  const Tensor b = cpu::packMatrix(randomTensor({k, n}), 2 * kLanes);
  runLayer(state, {m, k}, 2. * static_cast<double>(m * k * n),
           [&](Builder& builder, Value a) { return builder.packedMatMul(a, builder.constant(b), {.n = n}); });
}

// Both operands are computed: [heads, m, k] by [heads, k, m].
void headsLayer(benchmark::State& state, int64_t heads, int64_t m, int64_t k) {
  runLayer(state, {heads, m, k}, 2. * static_cast<double>(heads * m * m * k),
           [&](Builder& b, Value x) { return b.matMul(x, b.reshaped(x, {heads, k, m})); });
}

constexpr Layer kConvolutions[] = {
    {"resnet50", 3, 64, 224, 7, 2},    {"resnet50", 64, 64, 56, 1, 1},    {"resnet50", 64, 64, 56, 3, 1},
    {"resnet50", 64, 256, 56, 1, 1},   {"resnet50", 256, 64, 56, 1, 1},   {"resnet50", 128, 128, 56, 3, 2},
    {"resnet50", 256, 512, 56, 1, 2},  {"resnet50", 128, 128, 28, 3, 1},  {"resnet50", 128, 512, 28, 1, 1},
    {"resnet50", 512, 128, 28, 1, 1},  {"resnet50", 256, 256, 28, 3, 2},  {"resnet50", 256, 256, 14, 3, 1},
    {"resnet50", 256, 1024, 14, 1, 1}, {"resnet50", 1024, 256, 14, 1, 1}, {"resnet50", 512, 512, 14, 3, 2},
    {"resnet50", 512, 512, 7, 3, 1},   {"resnet50", 512, 2048, 7, 1, 1},  {"resnet50", 2048, 512, 7, 1, 1},
    {"vgg19", 3, 64, 224, 3, 1},       {"vgg19", 64, 64, 224, 3, 1},      {"vgg19", 64, 128, 112, 3, 1},
    {"vgg19", 128, 128, 112, 3, 1},    {"vgg19", 256, 256, 56, 3, 1},     {"vgg19", 512, 512, 28, 3, 1},
    {"vgg19", 512, 512, 14, 3, 1},     {"mobilenet", 3, 32, 224, 3, 2},   {"mobilenet", 24, 144, 56, 1, 1},
    {"mobilenet", 144, 24, 56, 1, 1},  {"mobilenet", 384, 64, 14, 1, 1},  {"mobilenet", 960, 160, 7, 1, 1},
};
constexpr Layer kDepthwise[] = {{"mobilenet", 32, 32, 112, 3, 1},
                                {"mobilenet", 96, 96, 112, 3, 2},
                                {"mobilenet", 192, 192, 28, 3, 1},
                                {"mobilenet", 576, 576, 14, 3, 1},
                                {"mobilenet", 960, 960, 7, 3, 1}};
constexpr int64_t kMatrices[][3] = {{128, 768, 768}, {128, 768, 3072}, {128, 3072, 768}, {197, 768, 3072},
                                    {1, 2048, 1000}, {1, 4096, 4096},  {4, 1024, 1024}};

const int kRegistered = [] {
  const auto add = [](const std::string& name, auto&& run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Arg(1)->Arg(2)->ArgName("threads")->UseRealTime();
  };
  for (const Layer& l : kConvolutions)
    add(fmt::format("{}/conv{}x{}s{}_{}to{}_{}", l.network, l.kernel, l.kernel, l.stride, l.channels, l.outputs,
                    l.size),
        [l](benchmark::State& state) { convLayer(state, l); });
  for (const Layer& l : kDepthwise)
    add(fmt::format("{}/depthwise{}x{}s{}_{}_{}", l.network, l.kernel, l.kernel, l.stride, l.channels, l.size),
        [l](benchmark::State& state) { depthwiseLayer(state, l); });
  for (const auto& [m, k, n] : kMatrices)
    add(fmt::format("matrix/{}x{}x{}", m, k, n), [=](benchmark::State& state) { matrixLayer(state, m, k, n); });
  add("heads/12x128x64", [](benchmark::State& state) { headsLayer(state, 12, 128, 64); });
  add("heads/12x197x64", [](benchmark::State& state) { headsLayer(state, 12, 197, 64); });
  return 0;
}();

}  // namespace
}  // namespace aglow

#endif
