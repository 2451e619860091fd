// The OpenCL backend on whatever device the machine has; without one there is nothing to see.
#include "backends/opencl/opencl.h"

#include <gmock/gmock.h>

#include <cstring>
#include <new>
#include <set>
#include <thread>

#include "backends/device_observer.h"
#include "backends/opencl/timeline.h"
#include "compile/compile.h"
#include "counter_module.h"
#include "graph/text.h"
#include "inst/text.h"
#include "on_device.h"
#include "ops/all_ops.h"
#include "random_graph.h"
#include "support/sizes.h"
#include "support/stop.h"

namespace aglow {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  EXPECT_THAT(executable->state().read(0)->doubles(), ElementsAre(31, 62));
  ASSERT_TRUE(executable->state().write(0, step.ref()).ok());
  auto total = executable->run(std::vector{step}, nullptr, add);
  ASSERT_TRUE(total.ok());
  EXPECT_THAT(total->at(0).doubles(), ElementsAre(20, 40));
  ASSERT_TRUE(executable->run(std::vector<Tensor>{}, nullptr, reset).ok());
  EXPECT_THAT(executable->state().read(0)->doubles(), ElementsAre(0, 0));
  executable->state().reset();
  EXPECT_THAT(executable->state().read(0)->doubles(), ElementsAre(1, 2));
  // A run that ends by an exception has changed it as well.
  struct Throws final : DeviceObserver {
    void begin(size_t) override {}
    void end(size_t) override {}
    void ran(size_t, Time, Time) override { throw std::bad_alloc(); }
    void copied(std::string_view, int64_t, Time, Time) override {}
  } observer;
  EXPECT_EQ(executable->run(std::vector{step}, &observer, add).error().code, Code::OutOfMemory);
  EXPECT_THAT(executable->state().read(0)->doubles(), ElementsAre(11, 22));
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

// Programs as they are given, without the phases that make them.
TEST_F(OnDevice, KeepsWhatNoInstructionTouchesAndCopiesOnTheDeviceItself) {
  auto executable = placed(R"(declare {
  %kept = placeholder f32[4]
  %x = placeholder f32[4]
  %y = placeholder f32[4]
}
program @main(@inout %kept, @in %x, @out %y) {
  copy.start @out %y, @in %x token 3
  copy.wait @out %y, @in %x token 3
})");
  ASSERT_TRUE(executable.ok()) << executable.error().text();
  const auto floats = [](std::vector<double> values) {
    return Tensor::of(Type(ElemKind::Float32, Shape{4}), std::move(values));
  };
  auto results = (*executable)->run(std::vector{floats({1, 2, 3, 4}), floats({5, 6, 7, 8})});
  ASSERT_TRUE(results.ok()) << results.error().text();
  EXPECT_THAT(results->at(0).doubles(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(results->at(1).doubles(), ElementsAre(5, 6, 7, 8));
}

TEST_F(OnDevice, ReadsAgainWhatItHasSentToTheHost) {
  auto executable = placed(R"(declare {
  %x = placeholder f32[4]
  %y = placeholder f32[4]
  %z = placeholder f32[4]
}
program @main(@in %x, @out %y, @out %z) {
  %in = alloc f32[4]
  copy.start @out %in, @in %x token 1
  copy.wait @out %in, @in %x token 1
  copy.start @out %y, @in %in token 2
  copy.wait @out %y, @in %in token 2
  %again = alloc f32[4]
  copy.start @out %again, @in %y token 3
  copy.wait @out %again, @in %y token 3
  Relu @inout %again, @in %again
  copy.start @out %z, @in %again token 4
  copy.wait @out %z, @in %again token 4
  dealloc %in
  dealloc %again
})");
  ASSERT_TRUE(executable.ok()) << executable.error().text();
  const auto x = Tensor::of(Type(ElemKind::Float32, Shape{4}), std::vector<double>{-1, 2, -3, 4});
  auto results = (*executable)->run(std::vector{x});
  ASSERT_TRUE(results.ok()) << results.error().text();
  EXPECT_THAT(results->at(0).doubles(), ElementsAre(-1, 2, -3, 4));
  EXPECT_THAT(results->at(1).doubles(), ElementsAre(0, 2, 0, 4));
}

// A row of products, too long for one batch.
std::string manyProducts(int count) {
  std::string text =
      "module {\n  placeholder @x : f32[2,2]\n  placeholder @w : f32[2,2]\n  placeholder @y : f32[2,2]\n"
      "  func @main {\n    %p0 = MatMul(@x, @w)\n";
  for (int i = 1; i < count; ++i) text += fmt::format("    %p{} = MatMul(%p{}, @w)\n", i, i - 1);
  return text + fmt::format("    Save(%p{}, @y)\n  }}\n}}", count - 1);
}

TEST_F(OnDevice, EndsARunThatIsAskedToStop) {
  const std::unique_ptr<Executable> executable = loaded(manyProducts(400));
  const auto matrix = [](double a, double b, double c, double d) {
    return Tensor::of(Type(ElemKind::Float32, Shape{2, 2}), std::vector<double>{a, b, c, d});
  };
  const std::vector inputs = {matrix(1, 2, 3, 4), matrix(0, 1, 1, 0)};
  int asked = 0;
  {
    const StopScope scope([&] { return ++asked == 2; });
    const auto ended = executable->run(inputs);
    ASSERT_FALSE(ended.ok());
    EXPECT_EQ(ended.error().code, Code::Cancelled);
    EXPECT_EQ(asked, 2);
  }
  {
    const StopScope scope([&] { return ++asked < 0; });
    const auto whole = executable->run(inputs);
    ASSERT_TRUE(whole.ok()) << whole.error().text();
    EXPECT_THAT(whole->at(0).doubles(), ElementsAre(1, 2, 3, 4));
    EXPECT_GE(asked, 2 + 5);
  }
}

TEST_F(OnDevice, RunsSideBySideWhileOthersStop) {
  const std::unique_ptr<Executable> executable = loaded(manyProducts(200));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto x = Tensor::of(Type(ElemKind::Float32, Shape{2, 2}), std::vector<double>{1.0 * t, 2, 3, 4});
      const auto w = Tensor::of(Type(ElemKind::Float32, Shape{2, 2}), std::vector<double>{0, 1, 1, 0});
      for (int run = 0; run < 5; ++run) {
        const StopScope scope([&] { return t % 2 == 1; });
        const auto y = executable->run(std::vector{x, w});
        ASSERT_EQ(y.ok(), t % 2 == 0);
        if (y.ok()) EXPECT_THAT(y->at(0).doubles(), ElementsAre(1.0 * t, 2, 3, 4));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

class Times final : public DeviceObserver {
public:
  struct Span {
    std::string what;
    int64_t bytes;
    Time begin, end;
  };
  void begin(size_t) override { FAIL() << "the host does not see instructions begin"; }
  void end(size_t) override {}
  void ran(size_t instr, Time begin, Time end) override { kernels.push_back({std::to_string(instr), 0, begin, end}); }
  void copied(std::string_view what, int64_t bytes, Time begin, Time end) override {
    copies.push_back({std::string(what), bytes, begin, end});
  }
  std::vector<Span> kernels, copies;
};

TEST_F(OnDevice, TellsTimesByTheDevicesClock) {
  const std::unique_ptr<Executable> executable = loaded(manyProducts(5));
  const auto x = Tensor::of(Type(ElemKind::Float32, Shape{2, 2}), std::vector<double>{1, 2, 3, 4});
  Times times;
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(executable->run(std::vector{x, x}, &times).ok());
  ASSERT_EQ(times.kernels.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_LT(times.kernels[i].begin, times.kernels[i].end);
    EXPECT_GE(times.kernels[i].begin, i == 0 ? before : times.kernels[i - 1].end);
  }
  std::vector<std::string> copies;
  for (const Times::Span& copy : times.copies) copies.push_back(fmt::format("{} {}", copy.what, copy.bytes));
  // One that shares the host's memory has nothing to copy; one that is bounded has, whatever it shares.
  if (backend_->device().unifiedMemory)
    EXPECT_TRUE(copies.empty());
  else
    EXPECT_THAT(copies, ElementsAre("input x 16", "input w 16", "output y 16"));
}

TEST(Timeline, BeginsWithItsFirstCommand) {
  opencl::Api api;
  api.GetEventProfilingInfo = [](opencl::Event, uint32_t, size_t bytes, void* place, size_t*) {
    std::memset(place, 0, bytes);
    return int32_t{opencl::kSuccess};
  };
  api.ReleaseEvent = [](opencl::Event) { return int32_t{opencl::kSuccess}; };
  opencl::Timeline timeline(api);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // in which inputs are copied
  const auto first = std::chrono::steady_clock::now();
  *timeline.kernel(0) = reinterpret_cast<opencl::Event>(&api);
  Times times;
  ASSERT_TRUE(timeline.tell(times).ok());
  ASSERT_EQ(times.kernels.size(), 1u);
  EXPECT_GE(times.kernels[0].begin, first);
}

TEST_F(OnDevice, CopiesWhatTheCallerHasElsewhere) {
  const std::unique_ptr<Executable> executable = loaded(manyProducts(2));
  const auto of = [](double a) {
    return Tensor::of(Type(ElemKind::Float32, Shape{2, 2}), std::vector<double>{a, 2, 3, 4});
  };
  const Tensor x = of(1), w = Tensor::of(x.type(), std::vector<double>{0, 1, 1, 0});
  std::vector<float> memory(64);
  // Aligned to elements alone, or as kernels want them; both at the same address; what lies across another.
  auto* base = reinterpret_cast<float*>(alignUp(reinterpret_cast<intptr_t>(memory.data()), 64));
  for (const size_t at : {0, 1, 16, 3}) {
    std::memcpy(base + at, x.data(), 16);
    const TensorRef given = {&x.type(), reinterpret_cast<std::byte*>(base + at)};
    Tensor y(x.type());
    Times times;
    ASSERT_TRUE(
        executable->run(std::vector{given, w.ref()}, std::vector{TensorRef{&x.type(), y.mutableData()}}, &times).ok());
    EXPECT_THAT(y.doubles(), ElementsAre(1, 2, 3, 4));
    ASSERT_TRUE(executable->run(std::vector{given, given}, std::vector{TensorRef{&x.type(), y.mutableData()}}).ok());
    EXPECT_THAT(y.doubles(), ElementsAre(37, 54, 81, 118));
    if (backend_->device().unifiedMemory) EXPECT_EQ(times.copies.size(), at % 16 == 0 ? 0u : 1u);
  }
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
  // Where weights could travel, what travels is placed when compiling.
  if (!backend_->device().unifiedMemory) {
    EXPECT_FALSE(compilation.ok());
    return;
  }
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
