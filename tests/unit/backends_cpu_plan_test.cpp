// The plans that the CPU puts on instructions, who keeps them, and what becomes of those that others made.
#include <gmock/gmock.h>

#include "backends/cpu/code/plans.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/table.h"
#include "backends/plan.h"
#include "compile/evaluate.h"
#include "compile/phases.h"
#include "graph/text.h"
#include "inst/text.h"
#include "support/check.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kNet = R"(module {
  placeholder @x : f32[1,3,8,8]
  placeholder @m : f32[8,8]
  constant @w : f32[16,3,3,3] = splat 0.5
  constant @v : f32[128,5] = splat 0.25
  placeholder @y : f32[8,5]
  placeholder @z : f32[1,3,4,4]
  func @main {
    %conv = Conv(@x, @w) {pads = [1, 1, 1, 1]}
    %relu = Relu(%conv)
    %rows = Reshape(%relu) {shape = [8, 128]}
    %fc = MatMul(%rows, @v)
    %exp = Exp(%fc)
    Save(%exp, @y)
    %pool = MaxPool(@x) {kernel = [2, 2], strides = [2, 2]}
    Save(%pool, @z)
  }
}
)";

Result<Compilation> compiled(std::vector<Program> programs, const CompileOptions& options) {
  Compilation compilation;
  compilation.programs = std::move(programs);
  if (compilation.programs.empty()) {
    AGLOW_TRY(compilation.module, parseModule(kNet));
  }
  AGLOW_TRY(compilation.backend, makeBackend(options));
  ReferenceEvaluator evaluator;
  AGLOW_OK(runPhases(compilation, options, evaluator));
  return compilation;
}

CompileOptions forCpu(const char* name) {
  CompileOptions options;
  options.backend = "cpu";
  options.target = {.triple = "x86_64-linux-gnu", .cpu = name};
  options.verifyEach = true;
  return options;
}

std::vector<Program> programsFor(const CompileOptions& options) {
  Result<Compilation> compilation = compiled({}, options);
  EXPECT_TRUE(compilation.ok()) << compilation.error().text();
  return std::move(compilation->programs);
}

const Instr& instrOf(const Program& program, std::string_view op) {
  for (const Instr& instr : program.instrs)
    if (instr.computes() && instrName(instr.kind == Instr::Kind::Fused ? instr.body.front() : instr) == op)
      return instr;
  ADD_FAILURE() << "no " << op << " in\n" << print(program);
  return program.instrs.front();
}

TEST(CpuPlan, StandsOnEveryInstructionThatComputes) {
  for (const char* stage : {"plan", "fuse", "memory"}) {
    CompileOptions options = forCpu("x86-64-v3");
    options.stopAfter = stage;
    for (const Program& program : programsFor(options))
      for (const Instr& instr : program.instrs) EXPECT_EQ(instr.plan.has_value(), instr.computes()) << stage;
  }
}

TEST(CpuPlan, SaysWhatRunsAndWhyNothingElse) {
  const std::vector<Program> programs = programsFor(forCpu("x86-64-v3"));
  const Instr& conv = instrOf(programs[0], "BlockedConv");
  EXPECT_EQ(conv.kind, Instr::Kind::Fused);
  EXPECT_EQ(conv.plan->kernel, "tiles");
  EXPECT_THAT(conv.plan->refused, IsEmpty());
  EXPECT_THAT(*conv.plan->epilogue, ElementsAre(1, 2, 64, 8));
  const Instr& product = instrOf(programs[0], "PackedMatMul");
  EXPECT_EQ(product.plan->kernel, "tiles");
  EXPECT_THAT(product.plan->refused, ElementsAre(Refusal{"rows", "needs panels of 1 column, has 16"},
                                                 Refusal{"matvec", "needs at most 4 rows, has 8"}));
  const Instr& pool = instrOf(programs[0], "MaxPool");
  EXPECT_EQ(pool.plan->kernel, "rows");
  EXPECT_THAT(pool.plan->refused, ElementsAre(Refusal{"planes", "needs channels in blocks, has f32[1,3,8,8]"}));
  EXPECT_FALSE(pool.plan->epilogue.has_value());
}

// What takes a product; where that is the general kernel, what the row before it says.
TEST(CpuPlan, SaysWhatAKernelNeedsAndWhatIsThere) {
  const auto reason = [](const Type& a, const Type& b, const Type& y) {
    const Attrs attrs(opDef(Op::MatMul));
    const std::vector<const Type*> in = {&a, &b}, out = {&y};
    const cpu::KernelChoice choice = cpu::chooseKernel({attrs, in, out}, {});
    return choice.row->name == "general" ? choice.refused.back().reason : "by " + std::string(choice.row->name);
  };
  const auto f32 = [](Shape shape) { return Type(ElemKind::Float32, std::move(shape)); };
  const auto f16 = [](Shape shape) { return Type(ElemKind::Float16, std::move(shape)); };
  EXPECT_EQ(reason(f32({2, 3}), f32({3, 4}), f32({2, 4})), "by tiles");
  EXPECT_EQ(reason(f32({2, 3}), f32({3}), f32({2})), "by dots");
  EXPECT_EQ(reason(f16({2, 3}), f16({3, 4}), f16({2, 4})), "needs f32, has f16");
  EXPECT_EQ(reason(f32({2, 0}), f32({0, 4}), f32({2, 4})), "needs elements, has f32[2,0]");
  EXPECT_EQ(reason(f32({3}), f32({3, 2}), f32({2})), "needs two matrices, has the vector f32[3]");
  EXPECT_EQ(reason(f32({2, 1, 2, 1, 2, 3}), f32({1, 2, 1, 2, 3, 4}), f32({2, 2, 2, 2, 2, 4})),
            "needs at most 3 leading axes that broadcast on their own, has 4");
}

TEST(CpuPlan, IsTheAnchorsOrThatOfTheWholeLoop) {
  CompileOptions options = forCpu("x86-64-v3");
  options.stopAfter = "plan";
  const std::vector<Program> before = programsFor(options), after = programsFor(forCpu("x86-64-v3"));
  const Instr& product = instrOf(after[0], "PackedMatMul");
  ASSERT_EQ(product.kind, Instr::Kind::Fused);
  EXPECT_EQ(product.plan, instrOf(before[0], "PackedMatMul").plan);
  for (const Instr& step : product.body) EXPECT_FALSE(step.plan.has_value());
  EXPECT_EQ(instrOf(before[0], "Relu").plan, (Plan{.kernel = Plan::kLoops, .units = 1}));
}

TEST(CpuPlan, OfAFileIsMadeAgain) {
  const std::vector<Program> own = programsFor(forCpu("x86-64-v3"));
  std::vector<Program> hostile = own;
  for (Instr& instr : hostile[0].instrs)
    if (instr.plan) *instr.plan = {.kernel = "no_such_kernel", .units = int64_t{1} << 60};
  hostile[0].unplace();
  const auto again = compiled(hostile, forCpu("x86-64-v3"));
  ASSERT_TRUE(again.ok()) << again.error().text();
  EXPECT_EQ(print(again->programs), print(own));
}

TEST(CpuPlan, OfAnotherMachineIsMadeAgainOrRefused) {
  std::vector<Program> foreign = programsFor(forCpu("x86-64"));
  const auto refused = compiled(foreign, forCpu("x86-64-v4"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("(BlockedConv): needs blocks of 16 channels, has 4"));
  EXPECT_THAT(refused.error().text(), HasSubstr("(PackedMatMul): needs panels of 32 columns, has 8"));
  // The interpreter runs them all, without plans and working memory.
  CompileOptions interpreted;
  interpreted.backend = "interpreter";
  const auto plain = compiled(foreign, interpreted);
  ASSERT_TRUE(plain.ok()) << plain.error().text();
  for (const Instr& instr : plain->programs[0].instrs) EXPECT_FALSE(instr.plan.has_value());
}

TEST(CpuPlan, IsAskedForInCode) {
  const auto backend = CpuBackend::create({.triple = "x86_64-linux-gnu", .cpu = "x86-64-v3"});
  ASSERT_TRUE(backend.ok());
  const cpu::Machine& machine = (*backend)->target().shape();
  std::vector<Program> programs = programsFor(forCpu("x86-64-v3"));
  Instr product = instrOf(programs[0], "PackedMatMul");
  EXPECT_EQ(cpu::kernelsOf(programs[0], product, machine).steps.size(), 1u);
  const auto refuses = [&](const auto& change) {
    Instr other = product;
    change(other.plan);
    EXPECT_THROW(cpu::kernelsOf(programs[0], other, machine), InternalError);
  };
  refuses([](auto& plan) { plan.reset(); });
  refuses([](auto& plan) { plan->kernel = "winograd"; });
  refuses([](auto& plan) { plan->kernel = "matvec"; });
  refuses([](auto& plan) { plan->units += 1; });
  refuses([](auto& plan) { plan->scratchBytes += 64; });
  refuses([](auto& plan) { (*plan->epilogue)[0] += 1; });
}

TEST(ForgetPlans, TakesWorkingMemoryAlong) {
  Program program = *parseProgram(
      "declare {\n  %a = placeholder f32[4,8]\n  %b = placeholder f32[8,6]\n  %y = placeholder f32[4,6]\n}\n"
      "program @f(@in %a, @in %b, @out %y) arena 64 {\n  %s = alloc u8[64] at 0\n"
      "  MatMul @out %y, @in %a, @in %b, @scratch %s by tiles scratch 64\n  dealloc %s\n}\n");
  forgetPlans(program);
  EXPECT_EQ(print(program),
            "declare {\n  %a = placeholder f32[4,8]\n  %b = placeholder f32[8,6]\n  %y = placeholder f32[4,6]\n}\n"
            "program @f(@in %a, @in %b, @out %y) {\n  MatMul @out %y, @in %a, @in %b\n}\n");
}

}  // namespace
}  // namespace aglow
