// How the time from an ONNX file to a placed program grows with the number of nodes: blocks of convolution, batch norm,
// relu, a residual sum, shape arithmetic, a matrix product and softmax, chained until the count is reached.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>

#include "dynamic/whole_model.h"
#include "unit/onnx_writer.h"

namespace aglow {
namespace {

namespace writer = onnx_writer;
using writer::kFloat;
using writer::kInt64;

constexpr int kNodesPerBlock = 10;

std::string modelOf(int nodes) {
  writer::Graph graph("scaling");
  graph.input("x0", kFloat, {1, 4, 4, 4});
  graph.initializer(
      writer::Tensor("filter", kFloat, {4, 4, 1, 1}).floats({1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}));
  graph.initializer(writer::Tensor("square", kFloat, {4, 4}).floats({1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1}));
  for (const char* name : {"scale", "bias", "mean", "variance"})
    graph.initializer(writer::Tensor(name, kFloat, {4}).floats({1, 2, 3, 4}));
  graph.initializer(writer::Tensor("first", kInt64, {1}).int64s({0}));
  std::string x = "x0";
  for (int i = 0; i < nodes / kNodesPerBlock; ++i) {
    const auto name = [&](const char* what) { return what + std::to_string(i); };
    graph.node(writer::Node("Conv", {x, "filter"}, {name("conv")}));
    graph.node(writer::Node("BatchNormalization", {name("conv"), "scale", "bias", "mean", "variance"}, {name("bn")}));
    graph.node(writer::Node("Relu", {name("bn")}, {name("relu")}));
    graph.node(writer::Node("Add", {name("relu"), x}, {name("sum")}));
    graph.node(writer::Node("Shape", {name("sum")}, {name("shape")}));
    graph.node(writer::Node("Gather", {name("shape"), "first"}, {name("batch")}));
    graph.node(writer::Node("Concat", {name("batch"), name("batch")}, {name("pair")}).attribute("axis", 0));
    graph.node(writer::Node("Reshape", {name("sum"), name("shape")}, {name("same")}));
    graph.node(writer::Node("MatMul", {name("same"), "square"}, {name("product")}));
    graph.node(writer::Node("Softmax", {name("product")}, {name("out")}).attribute("axis", 3));
    x = name("out");
  }
  graph.output(x, kFloat, {1, 4, 4, 4});
  return writer::Model().graph(graph).bytes();
}

void compileScaling(benchmark::State& state) {
  const auto nodes = static_cast<int>(state.range(0));
  const auto file = std::make_shared<std::string>(modelOf(nodes));
  for (auto _ : state) {
    const auto model = onnx::parseModel(std::as_bytes(std::span(*file)), file);
    if (!model.ok()) return state.SkipWithError("the model cannot be read");
    auto compiled = compileModel(*model, {});
    if (!compiled.ok()) return state.SkipWithError("the model does not compile");
    benchmark::DoNotOptimize(compiled->programs);
  }
  state.counters["per_node"] =
      benchmark::Counter(nodes, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(compileScaling)->Arg(1000)->Arg(2000)->Arg(5000)->Arg(10000)->Arg(20000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace aglow
