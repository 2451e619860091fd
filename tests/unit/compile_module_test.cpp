// Modules with several functions, compiled whole and run by name on every backend; the backend that is taken where none
// is named; phases that a backend changes.
#include <gmock/gmock.h>

#include "compile/compile.h"
#include "compile/evaluate.h"
#include "compile/phases.h"
#include "counter_module.h"
#include "graph/builder.h"
#include "graph/text.h"
#include "host_backends.h"
#include "inst/text.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::kCounter;

Compilation compiled(std::string_view text, const CompileOptions& options) {
  auto module = parseModule(text);
  EXPECT_TRUE(module.ok()) << module.error().text();
  auto result = compileModule(*std::move(module), options);
  EXPECT_TRUE(result.ok()) << result.diagnostics().errors().front().text();
  return *std::move(result);
}

std::unique_ptr<Executable> loaded(std::string_view text, const CompileOptions& options) {
  auto executable = load(compiled(text, options));
  EXPECT_TRUE(executable.ok()) << executable.error().text();
  return *std::move(executable);
}

Tensor row(double a, double b) { return Tensor::of(Type(ElemKind::Float32, Shape{2}), std::vector<double>{a, b}); }

class OnBackend : public ::testing::TestWithParam<std::string> {
protected:
  CompileOptions options() const {
    CompileOptions chosen;
    chosen.backend = GetParam();
    chosen.verifyEach = true;
    return chosen;
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, OnBackend, ::testing::ValuesIn(testing_support::hostBackends()));

TEST_P(OnBackend, RunsFunctionsByNameOverOneState) {
  const std::unique_ptr<Executable> executable = loaded(kCounter, options());
  ASSERT_EQ(executable->functions().size(), 2u);
  const size_t add = *executable->find("add"), reset = *executable->find("reset");
  EXPECT_EQ(executable->inputs(add).size(), 1u);
  EXPECT_EQ(executable->outputs(reset).size(), 0u);
  const auto total = [&](double a, double b) {
    auto outputs = executable->run(std::vector{row(a, b)}, nullptr, add);
    EXPECT_TRUE(outputs.ok()) << outputs.error().text();
    return outputs->at(0).doubles();
  };
  EXPECT_THAT(total(10, 20), ElementsAre(11, 22));
  EXPECT_THAT(total(10, 20), ElementsAre(21, 42));
  ASSERT_TRUE(executable->run(std::vector<Tensor>{}, nullptr, reset).ok());
  EXPECT_THAT(total(1, 1), ElementsAre(1, 1));

  State& state = executable->state();
  ASSERT_EQ(state.bindings().size(), 1u);
  EXPECT_EQ(state.find("count"), 0u);
  EXPECT_EQ(state.find("total"), 1u);
  EXPECT_THAT(state.read(0)->doubles(), ElementsAre(1, 1));
  ASSERT_TRUE(state.write(0, row(5, 6).ref()).ok());
  EXPECT_THAT(total(1, 1), ElementsAre(6, 7));
  EXPECT_EQ(state.write(0, Tensor::ints({1}).ref()).error().code, Code::BadBinding);
  state.reset();
  EXPECT_THAT(state.read(0)->doubles(), ElementsAre(1, 2));
  EXPECT_EQ(executable->facts().stateBytes, 8);
}

TEST_P(OnBackend, ExecutablesOfOneModuleHaveStatesOfTheirOwn) {
  const std::unique_ptr<Executable> one = loaded(kCounter, options()), other = loaded(kCounter, options());
  ASSERT_TRUE(one->run(std::vector{row(10, 20)}, nullptr, *one->find("add")).ok());
  EXPECT_THAT(one->state().read(0)->doubles(), ElementsAre(11, 22));
  EXPECT_THAT(other->state().read(0)->doubles(), ElementsAre(1, 2));
}

TEST_P(OnBackend, AFunctionIsChosenByNameOrByRule) {
  const std::unique_ptr<Executable> counter = loaded(kCounter, options());
  const auto none = counter->find();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::Usage);
  EXPECT_THAT(none.error().hint, HasSubstr("'add', 'reset'"));
  EXPECT_THAT(counter->find("rest").error().hint, HasSubstr("did you mean 'reset'"));
  EXPECT_EQ(*loaded("module { placeholder @y : f32[] constant @c : f32[] = [1] func @f { Save(@c, @y) } }", options())
                 ->find(),
            0u);
  constexpr const char* kWithMain = R"(module { placeholder @y : f32[] constant @c : f32[] = [1]
    func @f { Save(@c, @y) } func @main { %n = Neg(@c) Save(%n, @y) } })";
  EXPECT_EQ(*loaded(kWithMain, options())->find(), 1u);
}

// Both products want the same panels of weights, and both functions the same bias.
constexpr const char* kSharedWeights = R"(module {
  placeholder @x : f32[4,16]
  placeholder @y : f32[4,16]
  constant @w : f32[16,16] = splat 0.5
  constant @b : f32[16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]
  func @plain { %p = MatMul(@x, @w) %s = Add(%p, @b) Save(%s, @y) }
  func @positive { %p = MatMul(@x, @w) %s = Add(%p, @b) %r = Relu(%s) Save(%r, @y) }
})";

TEST_P(OnBackend, FunctionsShareConstants) {
  const Compilation result = compiled(kSharedWeights, options());
  ASSERT_EQ(result.programs.size(), 2u);
  ASSERT_TRUE(result.placed());
  std::set<const std::byte*> bytes;
  for (const Program& program : result.programs)
    for (const Region& region : program.regions)
      if (const auto* constant = region.as<ConstantInit>()) bytes.insert(constant->bytes.data());
  EXPECT_EQ(bytes.size(), 2u) << print(result.programs);
  size_t declared = 0;
  for (const Region* region : sharedRegions(result.programs)) declared += region->as<ConstantInit>() != nullptr ? 1 : 0;
  EXPECT_EQ(declared, 2u) << print(result.programs);
}

TEST_P(OnBackend, ProgramsReadBackAndRun) {
  const Compilation result = compiled(kCounter, options());
  const std::string text = print(result.programs);
  EXPECT_THAT(text, HasSubstr("%count = state f32[2] = [1, 2]"));
  auto programs = parsePrograms(text);
  ASSERT_TRUE(programs.ok()) << programs.error().text();
  EXPECT_EQ(*programs, result.programs);
  auto executable = result.backend->compile(*std::move(programs), {});
  ASSERT_TRUE(executable.ok()) << executable.error().text();
  const auto outputs = (*executable)->run(std::vector{row(10, 20)}, nullptr, *(*executable)->find("add"));
  EXPECT_THAT(outputs->at(0).doubles(), ElementsAre(11, 22));
}

// Rules may not carry a read of the state over the Save that changes it.
TEST_P(OnBackend, ReadsOfStateStayBeforeItsSave) {
  constexpr const char* kTransposes = R"(module {
    state @s : f32[2,3] = [1, 2, 3, 4, 5, 6]
    placeholder @y : f32[2,3]
    func @main {
      %t = Transpose(@s) {perm = [1, 0]}
      %n = Neg(@s)
      Save(%n, @s)
      %back = Transpose(%t) {perm = [1, 0]}
      Save(%back, @y)
    }
  })";
  const std::unique_ptr<Executable> executable = loaded(kTransposes, options());
  const auto outputs = executable->run(std::vector<Tensor>{});
  ASSERT_TRUE(outputs.ok());
  EXPECT_THAT(outputs->at(0).doubles(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(executable->state().read(0)->doubles(), ElementsAre(-1, -2, -3, -4, -5, -6));
}

TEST_P(OnBackend, OnlyTheFunctionsThatAreWanted) {
  CompileOptions chosen = options();
  chosen.functions = {"reset"};
  const Compilation result = compiled(kCounter, chosen);
  EXPECT_THAT(result.functionNames(), ElementsAre("reset"));
  EXPECT_EQ(result.programs.size(), 1u);
  chosen.functions = {"subtract"};
  const auto refused = compileModule(*parseModule(kCounter), chosen);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().errors().front().code, Code::Usage);
}

TEST(CompileModule, FaultsNameTheFunction) {
  CompileOptions options;
  options.observer = [](const StageEvent& event) -> Status {
    if (event.function != "reset") return {};
    return Error{.code = Code::Interrupted, .message = "enough"};
  };
  const auto stopped = compileModule(*parseModule(kCounter), options);
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.diagnostics().errors().front().text(), HasSubstr("function 'reset'"));
}

TEST(CompileModule, StopsEveryFunctionAtTheSamePass) {
  CompileOptions options;
  options.backend = kReferenceBackend;
  options.stopAfter = "generate-instructions";
  const Compilation result = compiled(kCounter, options);
  EXPECT_EQ(result.module, nullptr);
  EXPECT_EQ(result.programs.size(), 2u);
  options.stopAfter = "min-peak-memory";
  EXPECT_NE(compiled(kCounter, options).module, nullptr);
}

TEST(DefaultBackend, IsTheFastestThatIsBuilt) {
#ifdef AGLOW_LLVM
  EXPECT_EQ(defaultBackend(), "cpu");
#else
  EXPECT_EQ(defaultBackend(), "interpreter");
#endif
  const auto made = makeBackend({});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->name(), defaultBackend());
  EXPECT_EQ(compiled(kCounter, {}).backend->name(), defaultBackend());
  CompileOptions wrong;
  wrong.backend = "gpu";
  EXPECT_EQ(makeBackend(wrong).error().code, Code::Usage);
}

// ---------------------------------------------------------------- phases

std::vector<std::string> namesOf(const PhaseList& phases) {
  std::vector<std::string> names;
  for (const Phase& phase : phases) names.push_back(phase.name);
  return names;
}

Phase named(const std::string& name) {
  return {.name = name, .doc = "", .on = Phase::On::Graph, .passes = {}, .run = {}};
}

TEST(PhaseList, IsChangedByName) {
  PhaseList phases({named("a"), named("b")});
  phases.insertAfter("a", named("between")).insertBefore("a", named("first")).replace("b", named("c"));
  EXPECT_THAT(namesOf(phases), ElementsAre("first", "a", "between", "c"));
  EXPECT_THAT(namesOf(phases.leaveOut("between")), ElementsAre("first", "a", "c"));
  EXPECT_EQ(phases.find("between"), nullptr);
  EXPECT_NE(phases.find("c"), nullptr);
  EXPECT_THROW(phases.leaveOut("b"), InternalError);
}

TEST(PhaseList, BackendsHaveTheirOwn) {
  CompileOptions options;
  options.backend = kReferenceBackend;
  const auto reference = makeBackend(options);
  EXPECT_THAT(
      namesOf(phasesFor(**reference, options)),
      ElementsAre("differentiate", "optimize", "lower", "optimize-core", "predicate", "schedule", "irgen", "memory"));
  options.lanes = 8;
  options.fuse = true;
  EXPECT_THAT(namesOf(phasesFor(**reference, options)),
              ElementsAre("differentiate", "optimize", "lower", "optimize-core", "layout", "predicate", "schedule",
                          "irgen", "fuse", "memory"));
  options.startFrom = "layout";
  EXPECT_TRUE(checkOptions(options).ok());
  options.lanes = 0;
  const Status missing = checkOptions(options);
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().text(), HasSubstr("backend 'interpreter' has no phase 'layout'"));
}

// A device that schedules by itself and counts the nodes that it gets.
class Counting : public Backend {
public:
  std::string_view name() const override { return "counting"; }
  Decision supports(const Node&) const override { return Decision::yes(); }
  Result<std::optional<Plan>> plan(const Program&, const Instr&) const override { return std::optional<Plan>(); }
  void changePhases(PhaseList& phases) const override {
    phases.leaveOut("schedule");
    phases.insertBefore("irgen", {.name = "count",
                                  .doc = "counts nodes",
                                  .on = Phase::On::Graph,
                                  .passes = {"count-nodes"},
                                  .run = [this](PhaseScope& scope) -> Status {
                                    if (!scope.enabled("count-nodes")) return {};
                                    nodes += scope.function->size();
                                    return scope.passDone("count-nodes", false, 0);
                                  }});
  }
  using Backend::compile;
  Result<std::unique_ptr<Executable>> compile(std::vector<Program>, const BackendOptions&) const override {
    return Error{.code = Code::Device, .message = "there is no such device"};
  }

  mutable size_t nodes = 0;
};

TEST(PhaseList, ADeviceInsertsAndLeavesOutPhases) {
  const auto run = [](const CompileOptions& options, const Counting& device) {
    Compilation compilation;
    compilation.module = *parseModule(kCounter);
    compilation.backend = std::shared_ptr<const Backend>(&device, [](const Backend*) {});
    ReferenceEvaluator evaluator;
    const Status status = runPhases(compilation, options, evaluator);
    EXPECT_TRUE(status.ok()) << status.error().text();
    return compilation;
  };
  const Counting device;
  const Compilation whole = run({}, device);
  EXPECT_EQ(device.nodes, 4u);
  EXPECT_TRUE(whole.placed());
  for (const PassTiming& timing : whole.timings) EXPECT_NE(timing.phase, "schedule");
  CompileOptions options;
  options.stopAfter = "count";
  EXPECT_NE(run(options, device).module, nullptr);
  EXPECT_EQ(device.nodes, 8u);
  options.disabled = {"count-nodes"};
  run(options, device);
  EXPECT_EQ(device.nodes, 8u);
}

}  // namespace
}  // namespace aglow
