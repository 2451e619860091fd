// Which instructions the CPU runs part by part, and that neither this nor the number of threads changes a bit.
#include <gmock/gmock.h>

#include <algorithm>

#include "backends/backend.h"
#include "compile/compile.h"
#include "graph/text.h"
#include "inst/chain.h"
#include "inst/fused.h"
#include "support/rng.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two blocks of a network for phones: points, single channels, points; the sum with what came in is read by the next.
std::string blocks(int64_t images, int64_t size, int64_t stride = 1) {
  const std::string map = std::to_string(size) + "," + std::to_string(size) + "]\n";
  const int64_t after = (size + stride - 1) / stride;
  const std::string strided = std::to_string(after) + "," + std::to_string(after) + "]\n";
  return "module {\n  placeholder @x : f32[" + std::to_string(images) + ",32," + map +
         "  constant @wide : f32[192,32,1,1] = splat 0.0625\n"
         "  constant @deep : f32[192,1,3,3] = splat 0.125\n"
         "  constant @narrow : f32[32,192,1,1] = splat 0.03125\n"
         "  placeholder @y : f32[" +
         std::to_string(images) + ",192," + strided +
         "  func @main {\n"
         "    %a = Conv(@x, @wide)\n    %b = Relu(%a)\n"
         "    %c = Conv(%b, @deep) {pads = [1, 1, 1, 1], group = 192}\n    %d = Relu(%c)\n"
         "    %e = Conv(%d, @narrow)\n    %f = Add(%e, @x)\n"
         "    %g = Conv(%f, @wide)\n    %h = Exp(%g)\n"
         "    %i = Conv(%h, @deep) {pads = [1, 1, 1, 1], strides = [" +
         std::to_string(stride) + ", " + std::to_string(stride) + "], group = 192}\n    Save(%i, @y)\n  }\n}\n";
}

// Points alone; the last one reads the sum of what came in and what the second made of the first.
std::string points(int64_t images, int64_t size) {
  const std::string map = std::to_string(size) + "," + std::to_string(size) + "]\n";
  return "module {\n  placeholder @x : f32[" + std::to_string(images) + ",32," + map +
         "  constant @wide : f32[192,32,1,1] = splat 0.0625\n  constant @narrow : f32[32,192,1,1] = splat 0.03125\n"
         "  placeholder @y : f32[" +
         std::to_string(images) + ",192," + map +
         "  func @main {\n    %a = Conv(@x, @wide)\n    %b = Conv(%a, @narrow)\n    %c = Add(%b, @x)\n"
         "    %d = Conv(%c, @wide)\n    %e = Relu(%d)\n    Save(%e, @y)\n  }\n}\n";
}

// Products of many matrices, and what is done with rows in between.
constexpr const char* kMatrices = R"(module {
  placeholder @x : f32[48,32,32]
  placeholder @y : f32[48,32,32]
  func @main {
    %t = MatMul(@x, @x)
    %s = LogSoftmax(%t)
    %u = MatMul(%s, %t)
    Save(%u, @y)
  }
})";

Compilation compiled(const std::string& text, const CompileOptions& options) {
  auto module = parseModule(text);
  EXPECT_TRUE(module.ok()) << module.error().text();
  auto compilation = compileModule(*std::move(module), options);
  EXPECT_TRUE(compilation.ok());
  return *std::move(compilation);
}

// The chains of a program: how many parts, and names of operators.
std::vector<std::string> chainsOf(const std::string& text) {
  CompileOptions options;
  options.backend = "cpu";
  options.target = {.triple = "x86_64-linux-gnu", .cpu = "x86-64-v3"};
  options.verifyEach = true;
  const Compilation compilation = compiled(text, options);
  std::vector<std::string> chains;
  const std::vector<Instr>& instrs = compilation.programs[0].instrs;
  for (size_t i = 0, end = 0; i < instrs.size(); i = end) {
    end = chainEnd(instrs, i);
    if (end == i + 1) continue;
    std::string& chain = chains.emplace_back(std::to_string(instrs[i].plan->cut->count()));
    for (size_t member = i; member < end; ++member) chain += " " + std::string(instrName(bodyOf(instrs[member])[0]));
  }
  return chains;
}

TEST(CpuChains, ByChannels) {
  EXPECT_THAT(chainsOf(blocks(1, 14)), ElementsAre("12 BlockedConv DepthwiseConv", "12 BlockedConv DepthwiseConv"));
}

// A third one would have more bytes alive at once.
TEST(CpuChains, ByPositions) {
  EXPECT_THAT(chainsOf(points(1, 28)), ElementsAre("28 BlockedConv BlockedConv"));
  EXPECT_THAT(chainsOf(points(2, 28)), ElementsAre("56 BlockedConv BlockedConv"));
  EXPECT_THAT(chainsOf(blocks(1, 28, 2)), ElementsAre("12 BlockedConv DepthwiseConv", "28 BlockedConv BlockedConv"));
}

TEST(CpuChains, ByMatrices) { EXPECT_THAT(chainsOf(kMatrices), ElementsAre("48 MatMul Reduce MatMul")); }

TEST(CpuChains, SmallInstructionsStayOnOneThread) {
  EXPECT_THAT(chainsOf(points(1, 2)), IsEmpty());
  EXPECT_THAT(chainsOf(blocks(1, 2)), IsEmpty());
}

TEST(CpuChains, KeepTheBits) {
  for (const std::string& text : {blocks(1, 14), blocks(3, 14), points(1, 28), points(2, 14), std::string(kMatrices)}) {
    CompileOptions options;
    options.backend = "cpu";
    std::optional<Tensor> expected;
    for (const bool chained : {false, true}) {
      options.disabled.clear();
      if (!chained) options.disabled.insert("chain");
      const Compilation compilation = compiled(text, options);
      const auto isChained = [](const Instr& instr) { return instr.chained; };
      EXPECT_EQ(std::ranges::any_of(compilation.programs[0].instrs, isChained), chained);
      for (const int threads : chained ? std::vector{1, 2, 3, 7} : std::vector{1}) {
        auto executable = compilation.backend->compile(compilation.programs, {.threads = threads});
        ASSERT_TRUE(executable.ok()) << executable.error().text();
        Rng rng(1);
        const Type& type = (*executable)->inputs()[0].type;
        std::vector<double> values;
        for (int64_t i = 0; i < type.elements(); ++i) values.push_back(rng.real(-1, 1));
        auto got = (*executable)->run(std::vector{Tensor::fromDoubles(type, values)});
        ASSERT_TRUE(got.ok()) << got.error().text();
        if (!expected) expected = (*got)[0];
        EXPECT_TRUE((*got)[0] == *expected) << threads << " threads, chained " << chained;
      }
    }
  }
}

}  // namespace
}  // namespace aglow
