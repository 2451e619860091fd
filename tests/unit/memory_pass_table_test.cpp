#include "memory/pass_table.h"

#include <gmock/gmock.h>

#include "backends/interpreter/interpreter.h"
#include "graph/builder.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/live_bytes.h"
#include "memory/place.h"
#include "random_graph.h"

namespace aglow {
namespace {

std::vector<Tensor> runProgram(const Program& program, const std::vector<Tensor>& inputs) {
  InterpreterOptions options;
  options.poison = true;
  auto executable = InterpreterExecutable::create(program, options);
  EXPECT_TRUE(executable.ok()) << executable.error().text();
  // An index may lie outside of its axis: then there are no results.
  auto results = executable->run(inputs);
  return results.ok() ? *std::move(results) : std::vector<Tensor>();
}

// Operators that memory passes treat in their own way come often.
bool interesting(const OpDef& op) {
  static const std::vector<std::string_view> kNames = {"Add",    "Relu",   "Neg",       "Where",   "Reshape",
                                                       "Slice",  "Concat", "Transpose", "Scatter", "TopK",
                                                       "Reduce", "MatMul", "Splat",     "Cast"};
  return std::find(kNames.begin(), kNames.end(), op.name) != kNames.end();
}

TEST(MemoryPasses, ResultsStayTheSameAfterEveryPass) {
  size_t copies = 0, shared = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Module module;
    RandomOptions options;
    options.predicates = 0;
    options.maxElements = 256;
    options.kinds = kindSet(ElemKind::Float32, ElemKind::Int32, ElemKind::Bool, ElemKind::Int64);
    options.allowed = seed % 2 == 0 ? interesting : [](const OpDef& op) { return op.kind != OpKind::Composite; };
    RandomGraph random(module, seed, options);
    const Function* function = random.addFunction("main", 25);
    auto program = generate(*function);
    ASSERT_TRUE(program.ok()) << program.error().text();
    std::vector<Tensor> inputs;
    for (const RegionId id : program->inputs()) inputs.push_back(randomTensor(random.random(), (*program)[id].type));

    Program plain = *program;
    ASSERT_TRUE(placeArena(plain).ok());
    const std::vector<Tensor> expected = runProgram(plain, inputs);
    if (expected.empty()) continue;

    const auto after = [&](const MemoryPass& pass, const Program& now, bool) -> Result<bool> {
      const Status valid = verify(now);
      EXPECT_TRUE(valid.ok()) << seed << " " << pass.name << ": " << valid.error().text() << print(now);
      BlobStore blobs;
      const auto again = parseProgram(print(now, &blobs), blobs);
      EXPECT_TRUE(again.ok()) << again.error().text();
      if (again.ok()) EXPECT_TRUE(*again == now) << print(now);
      Program copy = now;
      if (!copy.placed()) EXPECT_TRUE(placeArena(copy).ok());
      EXPECT_EQ(runProgram(copy, inputs), expected) << seed << " after " << pass.name << "\n" << print(*program);
      return true;
    };
    ASSERT_TRUE(runMemoryPasses(*program, {.before = {}, .after = after}).ok());
    if (::testing::Test::HasFailure()) return;
    EXPECT_TRUE(program->placed());
    EXPECT_LE(program->arenaBytes, plain.arenaBytes) << seed;
    for (const Instr& instr : program->instrs) {
      copies += instr.kind == Instr::Kind::Copy ? 1 : 0;
      for (const Operand& operand : instr.operands) shared += operand.access == Access::InOut ? 1 : 0;
    }
  }
  // The passes had something to do.
  EXPECT_GT(shared, 30U);
  EXPECT_LT(copies, 200U);
}

Program chain() {
  auto program = parseProgram(
      "declare { %x = placeholder f32[16] %y = placeholder f32[1] %w = constant f32[16] = splat 1 }\n"
      "program @f(@in %x, @out %y) { %a = alloc f32[16] Add @out %a, @in %x, @in %w %b = alloc f32[1024] Splat @out %b "
      "{shape = [1024]} "
      "dealloc %b Reduce @out %y, @in %a {keepdims = true, axes = [0]} dealloc %a }");
  EXPECT_TRUE(program.ok()) << program.error().text();
  return *std::move(program);
}

TEST(MemoryPasses, HooksChooseAndSeeEveryPass) {
  Program program = chain();
  std::vector<std::string> asked, ran;
  MemoryOptions options;
  options.before = [&](const MemoryPass& pass) {
    asked.emplace_back(pass.name);
    return pass.name == "lifetimes";
  };
  options.after = [&](const MemoryPass& pass, const Program&, bool) -> Result<bool> {
    ran.emplace_back(pass.name);
    return true;
  };
  ASSERT_TRUE(runMemoryPasses(program, options).ok());
  EXPECT_EQ(asked.size(), memoryPasses().size());
  // What is required runs whatever the answer.
  EXPECT_THAT(ran, ::testing::ElementsAre("scratch", "lifetimes", "place"));

  options.after = [&](const MemoryPass&, const Program&, bool) -> Result<bool> { return false; };
  Program open = chain();
  ASSERT_TRUE(runMemoryPasses(open, options).ok());
  EXPECT_FALSE(open.placed());

  options.after = [&](const MemoryPass&, const Program&, bool) -> Result<bool> {
    return Error{.code = Code::Interrupted, .message = "enough"};
  };
  const Status stopped = runMemoryPasses(program, options);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::Interrupted);
}

TEST(MemoryPasses, ReportsWhatAProgramNeeds) {
  Program program = chain();
  EXPECT_EQ(memoryReport(program).lowerBound, 64 + 4096);
  ASSERT_TRUE(placeArena(program).ok());
  MemoryReport report = memoryReport(program);
  EXPECT_EQ(report.arenaBytes, 64 + 4096);
  EXPECT_EQ(report.constantBytes, 64);
  EXPECT_EQ(report.inputBytes, 64);
  EXPECT_EQ(report.outputBytes, 4);
  ASSERT_EQ(report.buffers.size(), 2U);
  EXPECT_EQ(program[report.buffers[1].region].name, "b");
  EXPECT_EQ(report.buffers[1].bytes, 4096);
  EXPECT_EQ(report.buffers[1].first, 2);
  EXPECT_EQ(report.buffers[1].last, 4);
  // Nobody reads b.
  ASSERT_TRUE(runMemoryPasses(program).ok());
  EXPECT_EQ(memoryReport(program).arenaBytes, 64);
}

TEST(MemoryPasses, RefusesSizesBeyondAllMemory) {
  auto program = parseProgram(
      "declare { %y = placeholder f32[1] }\nprogram @f(@out %y) { %a = alloc u8[72057594037927936] Splat @out %a "
      "{elem = u8, shape = [72057594037927936]} dealloc %a Splat @out %y {shape = [1]} }");
  ASSERT_TRUE(program.ok()) << program.error().text();
  const Status refused = runMemoryPasses(*program);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::TooLarge);
}

TEST(LiveBytes, KeepsThePeakWhileLifetimesChange) {
  LiveBytes live(10);
  live.add(0, 4, 100);
  live.add(3, 9, 50);
  EXPECT_EQ(live.peak(), 150);
  live.add(3, 4, -100);
  EXPECT_EQ(live.peak(), 100);
  live.add(9, 9, 60);
  EXPECT_EQ(live.peak(), 110);
  live.add(5, 4, 1000);
  EXPECT_EQ(live.peak(), 110);
}

}  // namespace
}  // namespace aglow
