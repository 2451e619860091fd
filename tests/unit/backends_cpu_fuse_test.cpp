// Fused instructions in generated code against the interpreter, which runs the same programs without fusing.
#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/interpreter/interpreter.h"
#include "backends/plan.h"
#include "evaluate.h"
#include "fuse/fuse.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "memory/pass_table.h"
#include "random_matrices.h"

namespace aglow {
namespace {

TEST(CpuStack, AgreesWithTheInterpreter) {
  auto backend = CpuBackend::create({.optLevel = 1});
  ASSERT_TRUE(backend.ok()) << backend.error().text();
  size_t fused = 0, inPlace = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Module module;
    Rng rng(seed);
    testing_support::RandomMatrices random(module, rng, {.rows = 5, .columns = 37, .narrow = false});
    auto program = generate(random.grow(20));
    ASSERT_TRUE(program.ok()) << program.error().text();
    std::vector<Tensor> inputs;
    for (const RegionId id : program->inputs()) {
      const Type& type = (*program)[id].type;
      // A false predicate would let results be anything.
      const bool predicate = type == Type(ElemKind::Bool, Shape{});
      inputs.push_back(predicate ? Tensor::fromDoubles(type, std::vector<double>{1})
                                 : testing_support::randomTensor(rng, type));
    }
    Program plain = *program;
    ASSERT_TRUE(runMemoryPasses(plain).ok());
    auto interpreted = InterpreterExecutable::create(plain);
    ASSERT_TRUE(interpreted.ok()) << interpreted.error().text();
    const auto expected = interpreted->run(inputs);
    ASSERT_TRUE(expected.ok()) << expected.error().text();

    ASSERT_TRUE(planInstructions(*program, **backend).ok());
    ASSERT_TRUE(fuseInstructions(*program, *(*backend)->fusePolicy()).ok());
    ASSERT_TRUE(planInstructions(*program, **backend).ok());
    ASSERT_TRUE(runMemoryPasses(*program).ok());
    for (const Instr& instr : program->instrs) {
      if (instr.kind != Instr::Kind::Fused) continue;
      ++fused;
      for (const Operand& operand : instr.operands) inPlace += operand.access == Access::InOut ? 1 : 0;
    }
    const std::string text = print(*program);
    auto executable = (*backend)->compile(*std::move(program), {.threads = 2});
    ASSERT_TRUE(executable.ok()) << executable.error().text();
    const auto results = (*executable)->run(inputs);
    ASSERT_TRUE(results.ok()) << results.error().text();
    ASSERT_EQ(results->size(), expected->size());
    for (size_t i = 0; i < results->size(); ++i)
      EXPECT_TRUE(testing_support::sameValues((*expected)[i], (*results)[i]))
          << "seed " << seed << " " << (*executable)->outputs()[i].name << "\n"
          << text;
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(fused, 15U);
  EXPECT_GT(inPlace, 0U);
}

}  // namespace
}  // namespace aglow
