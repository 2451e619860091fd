// Fused instructions in generated code against the interpreter, which runs the same programs without fusing.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

// Rounding, holding and converting are one instruction where the target has it: halves, both ends, NaN and infinities.
TEST(CpuStack, RoundsToIntegersAsTheInterpreterDoes) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  std::vector<double> values{std::nan(""), kInf, -kInf, 0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3e9, -3e9, 1e30, 0.7};
  for (int i = -300; i < 300; ++i) values.push_back(i * 0.5);
  const std::string shape = "[" + std::to_string(values.size()) + "]";
  const Tensor x = Tensor::fromDoubles(Type(ElemKind::Float32, Shape{static_cast<int64_t>(values.size())}), values);
  struct Range {
    const char *kind, *low, *high;
  };
  const Range ranges[] = {{"u8", "0", "255"},     {"i8", "-128", "127"}, {"i16", "-32768", "32767"},
                          {"u8", "0.5", "254.5"}, {"i8", "-3", "7"},     {"i32", "-1000", "1000"},
                          {"u16", "0", "65535"}};
  for (const char* cpu : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
    auto backend = CpuBackend::create({.triple = "", .cpu = cpu});
    ASSERT_TRUE(backend.ok()) << backend.error().text();
    for (const Range& range : ranges)
      for (const bool rounded : {false, true}) {
        const std::string kind = range.kind;
        const std::string text = "declare { %x = placeholder f32" + shape + " %y = placeholder " + kind + shape +
                                 " %l = constant f32[] = [" + range.low + "] %h = constant f32[] = [" + range.high +
                                 "] }\nprogram @f(@in %x, @out %y) { %a = alloc f32" + shape + " %b = alloc f32" +
                                 shape + (rounded ? " Round @out %a, @in %x" : " Neg @out %a, @in %x") +
                                 " Clip @out %b, @in %a, @in %l, @in %h Cast @out %y, @in %b {to = " + kind +
                                 "} dealloc %a dealloc %b }";
        auto program = parseProgram(text);
        ASSERT_TRUE(program.ok()) << program.error().text();
        Program plain = *program;
        ASSERT_TRUE(runMemoryPasses(plain).ok());
        auto interpreted = InterpreterExecutable::create(plain);
        ASSERT_TRUE(interpreted.ok()) << interpreted.error().text();
        const auto expected = interpreted->run(std::vector<Tensor>{x});
        ASSERT_TRUE(expected.ok()) << expected.error().text();
        ASSERT_TRUE(fuseInstructions(*program, *(*backend)->fusePolicy()).ok());
        ASSERT_TRUE(planInstructions(*program, **backend).ok());
        ASSERT_TRUE(runMemoryPasses(*program).ok());
        auto executable = (*backend)->compile(*std::move(program), {});
        ASSERT_TRUE(executable.ok()) << executable.error().text();
        const auto results = (*executable)->run(std::vector<Tensor>{x});
        ASSERT_TRUE(results.ok()) << results.error().text();
        EXPECT_EQ((*expected)[0].toInts(), (*results)[0].toInts()) << cpu << "\n" << text;
      }
  }
}

}  // namespace
}  // namespace aglow
