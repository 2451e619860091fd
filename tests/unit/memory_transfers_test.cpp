#include "memory/transfers.h"

#include <gmock/gmock.h>

#include "backends/interpreter/interpreter.h"
#include "compile/evaluate.h"
#include "graph/builder.h"
#include "inst/banks.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/pass_table.h"
#include "memory/place.h"
#include "memory/timeline.h"
#include "optimize/pieces.h"
#include "random_graph.h"

namespace aglow {
namespace {

// A chain of layers as VGG-19 has them, much narrower: most of the weights are in the first product of matrices, which
// is cut, and most of the time goes into the convolutions before.
Program layers(Random& random) {
  Module module;
  Builder b(*module.addFunction("main"));
  const auto weight = [&](std::vector<int64_t> dims) {
    return b.constant(randomTensor(random, Type(ElemKind::Float32, Shape(std::move(dims)))), "w");
  };
  int64_t channels = 3;
  Value x = b.input("x", Type(ElemKind::Float32, Shape{1, channels, 8, 8}));
  for (const int64_t wide : {16, 16, 32, 32}) {
    x = b.relu(b.conv(x, weight({wide, channels, 3, 3}), weight({wide}), {.pads = {1, 1, 1, 1}}));
    channels = wide;
  }
  x = b.reshaped(x, {1, channels * 64});
  for (const auto& [in, out] : {std::pair{channels * 64, int64_t{32}}, {32, 64}, {64, 10}})
    x = b.relu(b.matMul(x, weight({in, out})));
  b.output("y", x);
  ReferenceEvaluator evaluator;
  EXPECT_TRUE(cutWeights(*module.functions().front(), 16 << 10, evaluator).ok());
  auto program = generate(*module.functions().front());
  EXPECT_TRUE(program.ok());
  EXPECT_TRUE(runMemoryPasses(*program).ok());
  return *std::move(program);
}

std::vector<Tensor> inputsOf(const Program& program, Random& random) {
  std::vector<Tensor> inputs;
  for (const RegionId id : program.inputs()) inputs.push_back(randomTensor(random, program[id].type));
  return inputs;
}

std::vector<Tensor> runOn(const Program& program, const std::vector<Tensor>& inputs, const LatencyModel& model = {},
                          Timeline* timeline = nullptr) {
  InterpreterOptions options;
  options.poison = true;
  options.clock = model;
  auto executable = InterpreterExecutable::create(program, options);
  EXPECT_TRUE(executable.ok()) << executable.error().text();
  auto results = executable->run(inputs);
  if (timeline != nullptr) *timeline = executable->timeline();
  return results.ok() ? *std::move(results) : std::vector<Tensor>();
}

int64_t deviceBytes(const Program& program) {
  const Banks banks(program);
  int64_t bytes = program.arenaBytes;
  for (size_t i = 0; i < program.regions.size(); ++i)
    if (program.regions[i].declared() && !banks.inHost(static_cast<RegionId>(i)))
      bytes += program.regions[i].type.bytes();
  return bytes;
}

// A device on which each layer takes longer than its weights do on their way.
LatencyModel slowDevice(int64_t bytes) {
  return {.flopsPerSecond = 1e8,
          .bytesPerSecond = 1e9,
          .startSeconds = 1e-6,
          .copyBytesPerSecond = 1e9,
          .copyStartSeconds = 1e-6,
          .memoryBytes = bytes};
}

TEST(Transfers, WeightsThatDoNotFitTravelWhileOthersAreUsed) {
  Random random(1);
  const Program whole = layers(random);
  const std::vector<Tensor> inputs = inputsOf(whole, random);
  const std::vector<Tensor> expected = runOn(whole, inputs);
  const LatencyModel model = slowDevice(whole.constantBytes() / 3);

  Program program = whole;
  const auto arena = placeCopies(std::span(&program, 1), model);
  ASSERT_TRUE(arena.ok()) << arena.error().text();
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().text();
  EXPECT_LE(deviceBytes(program), model.memoryBytes);
  Timeline plain, early;
  EXPECT_EQ(runOn(program, inputs, model, &plain), expected);
  EXPECT_GT(plain.copySeconds, 0);
  EXPECT_NEAR(plain.hidden(), 0, 1e-9) << "nothing is hidden before copies begin early";

  EXPECT_TRUE(prefetchCopies(program, *arena));
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().text();
  EXPECT_LE(deviceBytes(program), model.memoryBytes);
  EXPECT_EQ(runOn(program, inputs, model, &early), expected);
  // What remains is the input, before anything can be computed, and the output, after everything is.
  EXPECT_GE(early.hidden(), 0.9) << print(program);
  EXPECT_DOUBLE_EQ(early.copySeconds, plain.copySeconds);
  EXPECT_LT(early.seconds, plain.seconds);
  EXPECT_DOUBLE_EQ(simulate(program, model).exposedSeconds, early.exposedSeconds);
}

TEST(Transfers, WhatFitsStaysAndOnlyInputsAndOutputsTravel) {
  Random random(2);
  Program program = layers(random);
  ASSERT_TRUE(placeCopies(std::span(&program, 1), slowDevice(0)).ok());
  const Banks banks(program);
  for (size_t i = 0; i < program.regions.size(); ++i) {
    const bool placeholder = program.regions[i].as<PlaceholderInit>() != nullptr;
    EXPECT_EQ(banks.inHost(static_cast<RegionId>(i)), placeholder) << program.regions[i].name;
  }
}

TEST(Transfers, TooLittleMemoryIsRefusedWithTheLeastThatWouldDo) {
  Random random(3);
  const Program whole = layers(random);
  Program program = whole;
  const auto refused = placeCopies(std::span(&program, 1), slowDevice(1024));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::TooLarge);
  const std::string message = refused.error().message;
  const int64_t least = std::stoll(message.substr(std::string("at least ").size()));
  EXPECT_LT(least, whole.constantBytes() / 3);
  EXPECT_TRUE(placeCopies(std::span(&program, 1), slowDevice(least)).ok());
  EXPECT_LE(deviceBytes(program), least);
  Program again = whole;
  EXPECT_FALSE(placeCopies(std::span(&again, 1), slowDevice(least - 1)).ok());
}

TEST(Transfers, AnArenaIsNoLargerThanABuffer) {
  Random random(4);
  const Program whole = layers(random);
  LatencyModel model = slowDevice(whole.constantBytes() / 2);
  const auto arenaIn = [&](int64_t bufferBytes) {
    model.bufferBytes = bufferBytes;
    Program program = whole;
    Result<int64_t> arena = placeCopies(std::span(&program, 1), model);
    EXPECT_TRUE(!arena.ok() || program.arenaBytes <= *arena);
    return arena;
  };
  const auto refused = arenaIn(64);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("one buffer of the device has at most 64"));
  const int64_t least = std::stoll(refused.error().message.substr(std::string("at least ").size()));
  ASSERT_GT(*arenaIn(0), least + 64);
  const auto bounded = arenaIn(least + 64);
  ASSERT_TRUE(bounded.ok()) << bounded.error().text();
  EXPECT_LE(*bounded, least + 64);
}

TEST(Transfers, InputsThatNoMemoryHoldsAreRefused) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", Type(ElemKind::Float32, Shape{int64_t{1} << 40, 1 << 15}));
  b.output("y", b.relu(b.slice(x, {.starts = {0, 0}, .sizes = {1, 1}})));
  auto program = generate(*module.functions().front());
  ASSERT_TRUE(program.ok() && runMemoryPasses(*program).ok());
  const auto refused = placeCopies(std::span(&*program, 1), slowDevice(1 << 20));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::TooLarge);
}

TEST(Transfers, WhatFitsWholeIsKnown) {
  Random random(5);
  const Program program = layers(random);
  int64_t bytes = program.arenaBytes;
  for (const Region& region : program.regions)
    if (region.declared()) bytes += region.type.bytes();
  EXPECT_FALSE(fitsWhole(std::span(&program, 1), bytes));
  EXPECT_TRUE(fitsWhole(std::span(&program, 1), bytes + bytes / 16));
}

// Constants of all uses and kinds, views of them, outputs that are written in parts; any bound gives the same bits.
TEST(Transfers, RandomProgramsStayTheSameForEveryBound) {
  size_t streamed = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Module module;
    RandomOptions options;
    options.maxElements = 256;
    options.allowed = [](const OpDef& op) { return op.kind != OpKind::Composite; };
    RandomGraph graph(module, seed, options);
    auto program = generate(*graph.addFunction("main", 20));
    ASSERT_TRUE(program.ok());
    ASSERT_TRUE(runMemoryPasses(*program).ok());
    std::vector<Tensor> inputs;
    for (const RegionId id : program->inputs()) inputs.push_back(randomTensor(graph.random(), (*program)[id].type));
    const std::vector<Tensor> expected = runOn(*program, inputs);
    if (expected.empty()) continue;
    const int64_t all = program->arenaBytes + program->declaredBytes();
    for (const int64_t bytes : {all * 2, all * 3 / 4, all / 2}) {
      Program made = *program;
      const auto arena = placeCopies(std::span(&made, 1), slowDevice(std::max<int64_t>(bytes, 1)));
      if (!arena.ok()) {
        EXPECT_EQ(arena.error().code, Code::TooLarge);
        continue;
      }
      prefetchCopies(made, *arena);
      const Status valid = verify(made);
      ASSERT_TRUE(valid.ok()) << seed << valid.error().text() << print(made);
      BlobStore blobs;
      const auto again = parseProgram(print(made, &blobs), blobs);
      ASSERT_TRUE(again.ok() && *again == made) << print(made);
      EXPECT_EQ(runOn(made, inputs), expected) << seed << " " << bytes << print(made);
      streamed += hostRegions(std::span(&made, 1)).size() > inputs.size() + expected.size() ? 1 : 0;
    }
  }
  EXPECT_GT(streamed, 3U);
}

// Copies that a text has already: where they stand may be the only place for them.
TEST(Transfers, CopiesOfATextKeepTheirMeaning) {
  constexpr const char* kBodies[] = {
      // A buffer that is filled twice, with the token of a copy that is done.
      "copy.start @out %a, @in %w token 1 copy.wait @out %a, @in %w token 1 copy.start @out %a, @in %x token 1 "
      "copy.wait @out %a, @in %x token 1 Relu @out %b, @in %a copy.start @out %y, @in %b token 1 "
      "copy.wait @out %y, @in %b token 1",
      // What is sent is overwritten afterwards, and sent again.
      "Relu @out %a, @in %x copy.start @out %y, @in %a token 1 copy.wait @out %y, @in %a token 1 Exp @out %a, @in %x "
      "Neg @out %b, @in %a copy.start @out %y, @in %b token 9223372036854775807 "
      "copy.wait @out %y, @in %b token 9223372036854775807",
      // What was sent comes back.
      "Relu @out %a, @in %x copy.start @out %y, @in %a token 1 copy.wait @out %y, @in %a token 1 "
      "copy.start @out %b, @in %y token 1 copy.wait @out %b, @in %y token 1 Exp @out %a, @in %b "
      "copy.start @out %y, @in %a token 1 copy.wait @out %y, @in %a token 1",
      // What comes is sent on.
      "copy.start @out %a, @in %x token 1 copy.wait @out %a, @in %x token 1 copy.start @out %y, @in %a token 2 "
      "copy.wait @out %y, @in %a token 2 Relu @out %b, @in %a",
      // Under a predicate, which is computed before.
      "Less @out %q, @in %w, @in %x copy.start @out %a, @in %x token 1 if %r copy.wait @out %a, @in %x token 1 "
      "copy.start @out %b, @in %w token 1 copy.wait @out %b, @in %w token 1 if %r copy @out %y, @in %b",
  };
  for (const char* body : kBodies) {
    auto program = parseProgram(std::string(R"(declare {
  %x = placeholder f32[64]
  %y = placeholder f32[64]
  %w = constant f32[64] = splat 0.5
}
program @main(@in %x, @out %y) arena 1024 {
  %a = alloc f32[64] at 0
  %b = alloc f32[64] at 256
  %q = alloc bool[64] at 512
  %r = tensorview %q at 0 : bool[]
)") + body + " dealloc %a dealloc %b dealloc %q }");
    ASSERT_TRUE(program.ok() && verify(*program).ok()) << program.error().text() << verify(*program).error().text();
    const std::vector<Tensor> inputs = {Tensor(Type(ElemKind::Float32, Shape{64}))};
    const std::vector<Tensor> expected = runOn(*program, inputs);
    for (const int64_t bytes : {768, 1 << 20}) {
      Program made = *program;
      const auto arena = placeCopies(std::span(&made, 1), slowDevice(bytes));
      ASSERT_TRUE(arena.ok()) << arena.error().text();
      prefetchCopies(made, *arena);
      ASSERT_TRUE(verify(made).ok()) << verify(made).error().text() << print(made);
      EXPECT_EQ(runOn(made, inputs), expected) << print(made);
    }
  }
}

TEST(Transfers, FunctionsOfAModuleAgreeOnWhatStays) {
  Random random(4);
  std::vector<Program> programs = {layers(random)};
  programs.push_back(programs.front());
  programs.back().name = "other";
  const LatencyModel model = slowDevice(programs[0].constantBytes() / 2);
  ASSERT_TRUE(placeCopies(programs, model).ok());
  const auto host = hostRegions(programs);
  EXPECT_EQ(host, hostRegions(std::span(programs).first(1)));
  EXPECT_EQ(host, hostRegions(std::span(programs).last(1)));
  // Which of them needs more memory than there is.
  auto small =
      parseProgram("declare {\n  %a = placeholder f32[4]\n}\nprogram @small(@inout %a) {\n  Relu @inout %a, @in %a\n}");
  ASSERT_TRUE(small.ok()) << small.error().text();
  std::vector<Program> unlike = {*std::move(small), layers(random)};
  const auto refused = placeCopies(unlike, slowDevice(1024));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().where, "function '" + unlike.back().name + "'");
}

TEST(Transfers, OneSideOfACopyIsTheDevices) {
  auto program = parseProgram(R"(declare {
  %x = placeholder f32[8]
  %y = placeholder f32[8]
  %z = placeholder f32[8]
}
program @main(@in %x, @out %y, @out %z) {
  copy.start @out %y, @in %x token 1
  copy.wait @out %y, @in %x token 1
  copy.start @out %z, @in %y token 2
  copy.wait @out %z, @in %y token 2
})");
  ASSERT_TRUE(program.ok()) << program.error().text();
  EXPECT_EQ(hostRegions(std::span(&*program, 1)), (std::set<std::string, std::less<>>{"z"}));
}

TEST(Transfers, PartsOfWeightsAreNotTakenForOthersOfTheirName) {
  Random random(7);
  Module module;
  Builder b(*module.addFunction("main"));
  const auto weight = [&](int64_t columns, const char* name) {
    return b.constant(randomTensor(random, Type(ElemKind::Float32, Shape{16, columns})), name);
  };
  const Value whole = weight(16, "w"), other = weight(8, "w[0:8]");
  const Value x = b.input("x", Type(ElemKind::Float32, Shape{2, 16}));
  b.output("y", b.matMul(x, whole));
  b.output("z", b.matMul(x, other));
  Function& function = *module.functions().front();
  const auto placed = [&] {
    auto program = generate(function);
    EXPECT_TRUE(program.ok() && runMemoryPasses(*program).ok());
    return *std::move(program);
  };
  const Program before = placed();
  ReferenceEvaluator evaluator;
  EXPECT_TRUE(*cutWeights(function, 512, evaluator));
  const Program after = placed();
  const std::vector<Tensor> inputs = inputsOf(before, random);
  EXPECT_EQ(runOn(before, inputs), runOn(after, inputs));
}

TEST(Transfers, LargeWeightsAreCutAndGiveTheSameBits) {
  Random random(5);
  Module module;
  Builder b(*module.addFunction("main"));
  const auto weight = [&](std::vector<int64_t> dims) {
    return b.constant(randomTensor(random, Type(ElemKind::Float32, Shape(std::move(dims)))), "w");
  };
  Value x = b.input("x", Type(ElemKind::Float32, Shape{2, 3, 8, 8}));
  x = b.conv(x, weight({10, 3, 3, 3}), weight({10}), {});
  x = b.matMul(b.reshaped(x, {2, 360}), weight({360, 7}));
  x = b.matMul(x, b.transposed(weight({40, 7}), {1, 0}));
  b.output("y", x);
  Function& function = *module.functions().front();
  const auto placed = [&] {
    auto program = generate(function);
    EXPECT_TRUE(program.ok() && runMemoryPasses(*program).ok());
    return *std::move(program);
  };
  const Program whole = placed();
  ReferenceEvaluator evaluator;
  const auto cut = [&](int64_t bytes) {
    const Result<bool> changed = cutWeights(function, bytes, evaluator);
    EXPECT_TRUE(changed.ok());
    return changed.ok() && *changed;
  };
  EXPECT_FALSE(cut(1 << 20));
  EXPECT_TRUE(cut(400));
  const Program parts = placed();
  for (const Region& region : parts.regions)
    if (region.as<ConstantInit>() != nullptr) EXPECT_LE(region.type.bytes(), 1440) << region.name;
  const std::vector<Tensor> inputs = inputsOf(whole, random);
  EXPECT_EQ(runOn(whole, inputs), runOn(parts, inputs));
  EXPECT_FALSE(cut(1440));
  for (const auto& node : function.nodes()) EXPECT_NE(node->op(), Op::Transpose);
}

TEST(DeviceClock, CopiesTravelBesideWhatIsComputedAndExposeTheRest) {
  const auto program = parseProgram(R"(declare {
  %x = placeholder f32[1000]
  %y = placeholder f32[1000]
}
program @main(@in %x, @out %y) arena 8064 {
  %a = alloc f32[1000] at 0
  %b = alloc f32[1000] at 4032
  copy.start @out %a, @in %x token 1
  copy.wait @out %a, @in %x token 1
  Relu @out %b, @in %a
  dealloc %a
  copy.start @out %y, @in %b token 2
  copy.wait @out %y, @in %b token 2
  dealloc %b
}
)");
  ASSERT_TRUE(program.ok()) << program.error().text();
  const LatencyModel model{.flopsPerSecond = 1e12,
                           .bytesPerSecond = 8e3,
                           .startSeconds = 0,
                           .copyBytesPerSecond = 4e3,
                           .copyStartSeconds = 1};
  const Timeline timeline = simulate(*program, model);
  EXPECT_DOUBLE_EQ(timeline.copySeconds, 4);
  EXPECT_DOUBLE_EQ(timeline.exposedSeconds, 4);
  EXPECT_DOUBLE_EQ(timeline.seconds, 5);
  EXPECT_EQ(timeline.rows.size(), 3U);
}

}  // namespace
}  // namespace aglow
