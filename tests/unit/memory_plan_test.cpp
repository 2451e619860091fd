#include "memory/plan.h"

#include <gmock/gmock.h>

#include "backends/interpreter/interpreter.h"
#include "graph/builder.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "inst/verifier.h"
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

TEST(MemoryPlan, ResultsStayTheSameAfterEveryPass) {
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

    const auto after = [&](const MemoryPass& pass, const Program& now, bool) -> Status {
      const Status valid = verify(now);
      EXPECT_TRUE(valid.ok()) << seed << " " << pass.name << ": " << valid.error().text() << print(now);
      const auto again = parseProgram(print(now));
      EXPECT_TRUE(!again.ok() || *again == now);
      Program copy = now;
      if (!copy.placed()) EXPECT_TRUE(placeArena(copy).ok());
      EXPECT_EQ(runProgram(copy, inputs), expected) << seed << " after " << pass.name << "\n" << print(*program);
      return {};
    };
    ASSERT_TRUE(planMemory(*program, {.before = {}, .after = after}).ok());
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

}  // namespace
}  // namespace aglow
