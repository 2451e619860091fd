// The OpenCL backend on whatever device the machine has; without one there is nothing to see.
#include "backends/opencl/opencl.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "backends/plan.h"
#include "compile/compile.h"
#include "compile/evaluate.h"
#include "counter_module.h"
#include "evaluate.h"
#include "fuse/fuse.h"
#include "graph/text.h"
#include "inst/irgen.h"
#include "memory/pass_table.h"
#include "ops/all_ops.h"
#include "random_graph.h"

namespace aglow {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Drivers have threads and memory that sanitizers know nothing of.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

class OnDevice : public ::testing::Test {
protected:
  void SetUp() override { choose({}); }

  void choose(std::optional<codegen::DeviceShape> shape) {
    if (kSanitized) GTEST_SKIP() << "drivers are not run under sanitizers";
    auto made = OpenClBackend::create("", shape);
    if (!made.ok()) GTEST_SKIP() << made.error().text();
    backend_ = *std::move(made);
  }

  Result<std::unique_ptr<Executable>> compiled(const Function& function) const {
    AGLOW_TRY(Program program, generate(function));
    AGLOW_OK(planInstructions(program, *backend_));
    AGLOW_TRY(const bool fused, fuseInstructions(program, *backend_->fusePolicy()));
    if (fused) AGLOW_OK(planInstructions(program, *backend_));
    AGLOW_OK(runMemoryPasses(program));
    return backend_->compile(std::move(program), {});
  }

  // Random uses of an operator.
  static void addUses(RandomGraph& random, Function& function, const OpDef& op, int uses) {
    for (int i = 0; i < uses; ++i) {
      Node* node = random.addNode(function, op);
      ASSERT_NE(node, nullptr) << op.name;
      for (int r = 0; r < node->resultCount(); ++r)
        Builder(function).output(fmt::format("{}_{}_{}", op.name, i, r), Value(node, r));
    }
  }

  void expectSame(const Function& function, uint64_t seed, bool specials) const {
    Rng rng(seed);
    const NamedTensors bindings = testing_support::randomBindings(rng, function, specials);
    auto expected = evaluateFunction(function, bindings);
    auto executable = compiled(function);
    ASSERT_TRUE(executable.ok()) << executable.error().text();
    auto bound = bindByName((*executable)->inputs(), {bindings.begin(), bindings.end()});
    ASSERT_TRUE(bound.ok()) << bound.error().text();
    auto results = (*executable)->run(*bound);
    ASSERT_EQ(results.ok(), expected.ok()) << (results.ok() ? expected.error() : results.error()).text();
    if (!expected.ok()) return;  // an index outside of its axis, for both
    ASSERT_EQ(results->size(), expected->size());
    for (size_t i = 0; i < results->size(); ++i)
      EXPECT_TRUE(testing_support::sameValues((*expected)[i], (*results)[i])) << (*executable)->outputs()[i].name;
  }

  std::unique_ptr<Executable> loaded(std::string_view text) const {
    auto module = parseModule(text);
    EXPECT_TRUE(module.ok()) << module.error().text();
    CompileOptions options;
    options.backend = "opencl:" + backend_->device().address();
    options.verifyEach = true;
    auto compilation = compileModule(*std::move(module), options);
    EXPECT_TRUE(compilation.ok());
    auto executable = load(*std::move(compilation));
    EXPECT_TRUE(executable.ok()) << executable.error().text();
    return *std::move(executable);
  }

  std::shared_ptr<const OpenClBackend> backend_;
};

// Kernels as a GPU gets them, whatever the device is.
class OnGroups : public OnDevice {
protected:
  void SetUp() override {
    choose(codegen::DeviceShape{.sharesLocal = true, .groupItems = 256, .localBytes = 32 << 10});
  }
};

TEST_F(OnGroups, SharesTilesAndRows) {
  Module module;
  Builder b(*module.addFunction("f"));
  const auto input = [&](const char* name, Shape shape) {
    return b.input(name, Type(ElemKind::Float32, std::move(shape)));
  };
  const Value x = input("x", {2, 70, 33}), w = input("w", {33, 130});
  const Value product = b.matMul(x, w);
  b.output("product", b.abs(b.add(product, input("bias", {130}))));
  const Value scaled = b.mul(product, b.scalar(ElemKind::Float32, 0.1));
  const Value large = b.reduce(scaled, {.kind = "max", .axes = {2}});
  const Value powers = b.exp(b.sub(scaled, large));
  b.output("softmax", b.div(powers, b.reduce(powers, {.kind = "sum", .axes = {2}})));
  b.output("means", b.reduce(product, {.kind = "mean", .axes = {0, 2}, .keepdims = false}));
  b.output("largest", b.argReduce(product, {.kind = "max", .axis = 2}));
  const Value image = input("image", {2, 6, 9, 11});
  b.output("conv", b.conv(image, input("filter", {8, 3, 3, 3}), input("shift", {8}),
                          {.strides = {2, 1}, .pads = {1, 0, 1, 2}, .group = 2}));
  expectSame(b.function(), 3, false);
}

TEST_F(OnDevice, RunsEveryKernelOfTheCoreSet) {
  for (const OpDef* op : allOps()) {
    if (op->kind != OpKind::Core || op->isDataParallel()) continue;
    SCOPED_TRACE(op->name);
    Module module;
    RandomGraph random(module, 7, {.maxElements = 600, .predicates = 0});
    Function* function = module.addFunction("f");
    addUses(random, *function, *op, 4);
    expectSame(*function, 11, false);
  }
}

TEST_F(OnDevice, RunsEveryLoopOfTheCoreSet) {
  Module module;
  RandomGraph random(module, 3, {.maxElements = 200, .predicates = 0});
  Function* function = module.addFunction("f");
  for (const OpDef* op : allOps())
    if (op->kind == OpKind::Elementwise || (op->kind == OpKind::Core && op->isDataParallel()))
      addUses(random, *function, *op, 1);
  expectSame(*function, 5, true);
}

TEST_F(OnDevice, KeepsStateFromRunToRun) {
  const std::unique_ptr<Executable> executable = loaded(testing_support::kCounter);
  const size_t add = *executable->find("add"), reset = *executable->find("reset");
  const auto step = Tensor::of(Type(ElemKind::Float32, Shape{2}), std::vector<double>{10, 20});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(executable->run(std::vector{step}, nullptr, add).ok());
  EXPECT_THAT(executable->state().read(0).doubles(), ElementsAre(31, 62));
  ASSERT_TRUE(executable->state().write(0, step.ref()).ok());
  auto total = executable->run(std::vector{step}, nullptr, add);
  ASSERT_TRUE(total.ok());
  EXPECT_THAT(total->at(0).doubles(), ElementsAre(20, 40));
  ASSERT_TRUE(executable->run(std::vector<Tensor>{}, nullptr, reset).ok());
  EXPECT_THAT(executable->state().read(0).doubles(), ElementsAre(0, 0));
  executable->state().reset();
  EXPECT_THAT(executable->state().read(0).doubles(), ElementsAre(1, 2));
}

constexpr const char* kGather = R"(module {
  placeholder @x : f32[3,2]
  placeholder @i : i64[2]
  placeholder @y : f32[2,2]
  func @main {
    %rows = Gather(@x, @i) {axis = 0}
    Save(%rows, @y)
  }
})";

TEST_F(OnDevice, ReportsIndicesOutsideOfTheirAxis) {
  const std::unique_ptr<Executable> executable = loaded(kGather);
  const auto x = Tensor::of(Type(ElemKind::Float32, Shape{3, 2}), std::vector<double>{1, 2, 3, 4, 5, 6});
  const auto indices = [](double a, double b) {
    return Tensor::of(Type(ElemKind::Int64, Shape{2}), std::vector<double>{a, b});
  };
  auto bad = executable->run(std::vector{x, indices(0, 3)});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, Code::RuntimeValue);
  EXPECT_THAT(bad.error().message, HasSubstr("index 3 lies outside of axis 0, whose extent is 3"));
  auto good = executable->run(std::vector{x, indices(-1, 0)});
  ASSERT_TRUE(good.ok()) << good.error().text();
  EXPECT_THAT(good->at(0).doubles(), ElementsAre(5, 6, 1, 2));
}

TEST_F(OnDevice, RunsSideBySide) {
  const std::unique_ptr<Executable> executable = loaded(kGather);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto x = Tensor::of(Type(ElemKind::Float32, Shape{3, 2}), std::vector<double>{0, 1, 2, 3, 4, t + 5.0});
      const auto i = Tensor::of(Type(ElemKind::Int64, Shape{2}), std::vector<double>{2, 1});
      for (int run = 0; run < 20; ++run) {
        auto y = executable->run(std::vector{x, i});
        ASSERT_TRUE(y.ok()) << y.error().text();
        EXPECT_THAT(y->at(0).doubles(), ElementsAre(4, t + 5.0, 2, 3));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(OnDevice, RefusesWhatNoDeviceHolds) {
  const std::string text = R"(module {
  placeholder @x : f32[1]
  placeholder @y : f32[1099511627776,128]
  func @main {
    %wide = Add(@x, @y)
    Save(%wide, @y)
  }
})";
  auto module = parseModule(text);
  ASSERT_TRUE(module.ok()) << module.error().text();
  CompileOptions options;
  options.backend = "opencl";
  auto compilation = compileModule(*std::move(module), options);
  ASSERT_TRUE(compilation.ok());
  auto executable = load(*std::move(compilation));
  ASSERT_FALSE(executable.ok());
  EXPECT_EQ(executable.error().code, Code::TooLarge);
  EXPECT_THAT(executable.error().message, HasSubstr("inputs and outputs"));
}

TEST_F(OnDevice, NamesDevicesThatAreNotThere) {
  const auto made = OpenClBackend::create("nobody/9");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::Device);
  EXPECT_THAT(made.error().hint, HasSubstr(backend_->device().address()));
  EXPECT_TRUE(OpenClBackend::create(backend_->device().address()).ok());
  EXPECT_TRUE(OpenClBackend::create("/" + backend_->device().name).ok());
}

TEST_F(OnDevice, BuildsEqualKernelsOnce) {
  auto module = parseModule(R"(module {
  placeholder @x : f32[4,8]
  placeholder @w : f32[8,8]
  placeholder @y : f32[4,8]
  func @main {
    %a = MatMul(@x, @w)
    %b = MatMul(%a, @w)
    Save(%b, @y)
  }
})");
  ASSERT_TRUE(module.ok()) << module.error().text();
  auto program = generate(*(*module)->functions().front());
  ASSERT_TRUE(program.ok());
  std::set<std::string> texts;
  int kernels = 0;
  for (const Instr& instr : program->instrs)
    if (instr.kind == Instr::Kind::Compute)
      for (const codegen::Launch& launch : codegen::launchesOf(*program, instr, {})) {
        texts.insert(launch.text);
        ++kernels;
      }
  EXPECT_EQ(kernels, 2);
  EXPECT_EQ(texts.size(), 1u);
}

}  // namespace

}  // namespace aglow
