// Every operator of the core set, compiled for the CPU, against the interpreter: random uses, all kinds, vectors of all
// widths, with and without LLVM's optimizer.
#include <gtest/gtest.h>

#include "backends/cpu/cpu.h"
#include "backends/plan.h"
#include "compile/evaluate.h"
#include "evaluate.h"
#include "inst/irgen.h"
#include "memory/pass_table.h"
#include "ops/all_ops.h"
#include "random_graph.h"

namespace aglow {

namespace {

struct Config {
  const char* name;
  codegen::TargetOptions target;
  int threads = 1;
};

std::vector<Config> configs() {
  return {{.name = "native", .target = {}, .threads = 2},
          {.name = "avx2", .target = {.cpu = "x86-64-v3", .optLevel = 1}},
          {.name = "sse2", .target = {.cpu = "x86-64", .optLevel = 0}}};
}

class CpuOperator : public ::testing::TestWithParam<std::string> {};

// Placed, as the pipeline does it.
Result<std::unique_ptr<Executable>> compiled(const Function& function, const Config& config) {
  AGLOW_TRY(const auto backend, CpuBackend::create(config.target));
  AGLOW_TRY(Program program, generate(function));
  AGLOW_OK(planInstructions(program, *backend));
  AGLOW_OK(runMemoryPasses(program));
  return backend->compile(std::move(program), {.threads = config.threads});
}

TEST_P(CpuOperator, AgreesWithTheInterpreter) {
  const OpDef& op = opDef(*findOp(GetParam()));
  for (const Config& config : configs()) {
    SCOPED_TRACE(config.name);
    Module module;
    RandomGraph random(module, 7, {.maxElements = 600, .predicates = 0});
    Function* function = module.addFunction("f");
    int made = 0;
    for (int i = 0; i < 8; ++i)
      if (const Node* node = random.addNode(*function, op)) {
        ++made;
        for (int r = 0; r < node->resultCount(); ++r) {
          const std::string name = "y" + std::to_string(i) + "_" + std::to_string(r);
          Builder(*function).output(name, Value(const_cast<Node*>(node), r));
        }
      }
    ASSERT_GT(made, 0) << "no valid use was found";
    Rng rng(11);
    const NamedTensors bindings = testing_support::randomBindings(rng, *function, op.kind == OpKind::Elementwise);
    auto expected = evaluateFunction(*function, bindings);
    auto executable = compiled(*function, config);
    ASSERT_TRUE(executable.ok()) << executable.error().text();
    auto bound = bindByName((*executable)->inputs(), {bindings.begin(), bindings.end()});
    ASSERT_TRUE(bound.ok()) << bound.error().text();
    auto results = (*executable)->run(*bound);
    ASSERT_EQ(results.ok(), expected.ok());
    if (!expected.ok()) continue;  // an index outside of its axis, for both
    ASSERT_EQ(results->size(), expected->size());
    for (size_t i = 0; i < results->size(); ++i)
      EXPECT_TRUE(testing_support::sameValues((*expected)[i], (*results)[i])) << (*executable)->outputs()[i].name;
  }
}

std::vector<std::string> coreOperators() {
  std::vector<std::string> names;
  for (const OpDef* def : allOps())
    if (def->kind == OpKind::Elementwise || def->kind == OpKind::Core) names.emplace_back(def->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, CpuOperator, ::testing::ValuesIn(coreOperators()),
                         [](const auto& info) { return info.param; });

}  // namespace

}  // namespace aglow
