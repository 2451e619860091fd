// A small whole model: the time from file to program, and the time of one answer.
#include <benchmark/benchmark.h>

#include "dynamic/whole_model.h"
#include "tensor/npy.h"

namespace aglow {
namespace {

constexpr const char* kModel = AGLOW_EXAMPLES "/digits/digits.onnx";

void digitsCompile(benchmark::State& state) {
  for (auto _ : state) {
    auto compiled = compileFile(kModel, {});
    if (!compiled.ok()) return state.SkipWithError("the model does not compile");
    benchmark::DoNotOptimize(compiled->programs);
  }
}
BENCHMARK(digitsCompile)->Unit(benchmark::kMillisecond);

void digitsRun(benchmark::State& state) {
  auto compiled = compileFile(kModel, {});
  if (!compiled.ok()) return state.SkipWithError("the model does not compile");
  auto executable = load(*std::move(compiled), {});
  auto image = readNpy(AGLOW_EXAMPLES "/digits/images/7.npy", ElemKind::Float32);
  if (!executable.ok() || !image.ok()) return state.SkipWithError("the program does not load");
  const std::vector<Tensor> inputs = {*image};
  for (auto _ : state) {
    auto outputs = (*executable)->run(inputs);
    if (!outputs.ok()) return state.SkipWithError("the run failed");
    benchmark::DoNotOptimize(outputs->front());
  }
}
BENCHMARK(digitsRun)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace aglow
