// Random programs give the same bits with and without fusion, after every memory pass.
#include <gtest/gtest.h>

#include "backends/interpreter/interpreter.h"
#include "evaluate.h"
#include "fuse/fuse.h"
#include "graph/builder.h"
#include "inst/fused.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "memory/pass_table.h"
#include "memory/place.h"
#include "random_graph.h"
#include "random_matrices.h"

namespace aglow {
namespace {

std::vector<Tensor> run(const Program& program, const std::vector<Tensor>& inputs) {
  InterpreterOptions options;
  options.poison = true;
  auto executable = InterpreterExecutable::create(program, options);
  EXPECT_TRUE(executable.ok()) << executable.error().text();
  auto results = executable->run(inputs);
  return results.ok() ? *std::move(results) : std::vector<Tensor>();
}

struct Counts {
  size_t fused = 0, anchored = 0, reducing = 0, inPlace = 0;
};

// Compares after fusion and after each memory pass; false when there is nothing to compare.
bool compare(const Function& function, const std::string& what, Rng& rng, Counts& counts) {
  auto program = generate(function);
  EXPECT_TRUE(program.ok()) << program.error().text();
  std::vector<Tensor> inputs;
  for (const RegionId id : program->inputs()) {
    const Type& type = (*program)[id].type;
    // A false predicate would let results be anything.
    const bool predicate = type == Type(ElemKind::Bool, Shape{});
    inputs.push_back(predicate ? Tensor::fromDoubles(type, std::vector<double>{1})
                               : testing_support::randomTensor(rng, type));
  }
  Program plain = *program;
  EXPECT_TRUE(placeArena(plain).ok());
  const std::vector<Tensor> expected = run(plain, inputs);
  if (expected.empty()) return false;

  EXPECT_TRUE(fuseInstructions(*program, fuseEverything()).ok());
  const auto check = [&](std::string_view after, const Program& now) {
    const Status valid = verify(now);
    EXPECT_TRUE(valid.ok()) << what << " after " << after << ": " << valid.error().text() << "\n" << print(now);
    BlobStore blobs;
    const auto again = parseProgram(print(now, &blobs), blobs);
    EXPECT_TRUE(again.ok() && *again == now) << print(now);
    Program copy = now;
    if (!copy.placed()) EXPECT_TRUE(placeArena(copy).ok());
    const std::vector<Tensor> results = run(copy, inputs);
    EXPECT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < std::min(results.size(), expected.size()); ++i)
      EXPECT_TRUE(testing_support::sameValues(results[i], expected[i], true)) << what << " after " << after << "\n"
                                                                              << print(plain) << print(now);
  };
  check("fuse", *program);
  const auto after = [&](const MemoryPass& pass, const Program& now, bool) -> Result<bool> {
    check(pass.name, now);
    return true;
  };
  EXPECT_TRUE(runMemoryPasses(*program, {.before = {}, .after = after}).ok());
  for (const Instr& instr : program->instrs) {
    if (instr.kind != Instr::Kind::Fused) continue;
    const Result<BodyForm> form = formOf(*program, bodySteps(instr));
    EXPECT_TRUE(form.ok());
    ++counts.fused;
    counts.anchored += form->anchored ? 1 : 0;
    counts.reducing += form->reduces() ? 1 : 0;
    for (const Operand& operand : instr.operands) counts.inPlace += operand.access == Access::InOut ? 1 : 0;
  }
  return true;
}

TEST(FuseRandom, MatricesStayTheSame) {
  Counts counts;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Module module;
    Rng rng(seed);
    compare(testing_support::RandomMatrices(module, rng, {.rows = 3, .columns = 4}).grow(20),
            "seed " + std::to_string(seed), rng, counts);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(counts.fused, 300U);
  EXPECT_GT(counts.anchored, 20U);
  EXPECT_GT(counts.reducing, 60U);
  EXPECT_GT(counts.inPlace, 60U);
}

TEST(FuseRandom, AnyOperatorsStayTheSame) {
  Counts counts;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Module module;
    Rng rng(seed);
    RandomOptions options;
    options.predicates = 0;
    options.maxElements = 128;
    options.kinds = kindSet(ElemKind::Float32, ElemKind::Int32, ElemKind::Bool);
    options.allowed = [](const OpDef& op) { return op.kind != OpKind::Composite; };
    RandomGraph random(module, seed, options);
    compare(*random.addFunction("main", 25), "seed " + std::to_string(seed), rng, counts);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(counts.fused, 60U);
}

}  // namespace
}  // namespace aglow
