// Threads that share an executable on the device of tests/python/fake_opencl.c, which computes nothing: what they share
// is ours. ./dev runs it under ThreadSanitizer; without the fake loader there is nothing to see.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <latch>
#include <thread>

#include "backends/device_observer.h"
#include "backends/opencl/opencl.h"
#include "compile/compile.h"
#include "graph/text.h"
#include "support/stop.h"

namespace aglow {

namespace {

class Counts final : public DeviceObserver {
public:
  void begin(size_t) override {}
  void end(size_t) override {}
  void ran(size_t, Time, Time) override { ++kernels; }
  void copied(std::string_view, int64_t, Time, Time) override { ++copies; }
  int kernels = 0, copies = 0;
};

// With memory of its own, and with the host's.
class FakeDevice : public ::testing::TestWithParam<const char*> {
protected:
  void SetUp() override { setenv("FAKE_OPENCL", GetParam(), 1); }
  void TearDown() override { unsetenv("FAKE_OPENCL"); }
};
INSTANTIATE_TEST_SUITE_P(, FakeDevice, ::testing::Values("discrete", ""));

TEST_P(FakeDevice, IsSharedByThreads) {
  const auto backend = OpenClBackend::create("");
  if (!backend.ok() || (*backend)->device().name != "fake device") GTEST_SKIP() << "the loader is not the fake one";
  std::string text =
      "module {\n  placeholder @x : f32[2,2]\n  placeholder @y : f32[2,2]\n  state @s : f32[2,2] = [0, 0, 0, 0]\n"
      "  func @main {\n    %p0 = MatMul(@x, @x)\n";
  constexpr int kProducts = 200;
  for (int i = 1; i < kProducts; ++i) text += fmt::format("    %p{} = MatMul(%p{}, @x)\n", i, i - 1);
  text += fmt::format("    Save(%p{}, @y)\n  }}\n  func @count {{\n    %n = Add(@s, @x)\n    Save(%n, @s)\n  }}\n}}",
                      kProducts - 1);
  auto module = parseModule(text);
  ASSERT_TRUE(module.ok()) << module.error().text();
  CompileOptions options;
  options.backend = "opencl";
  auto compiled = compileModule(*std::move(module), options);
  ASSERT_TRUE(compiled.ok());
  auto executable = load(*std::move(compiled), {.contexts = 3});
  ASSERT_TRUE(executable.ok()) << executable.error().text();
  const size_t products = *(*executable)->find("main"), count = *(*executable)->find("count");
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      const std::vector inputs = {
          Tensor::of(Type(ElemKind::Float32, Shape{2, 2}), std::vector<double>{1, 2, 3, 4.0 * t})};
      for (int run = 0; run < 10; ++run) {
        Counts counts;
        const StopScope scope([&] { return t % 3 == 1; });
        const auto result = (*executable)->run(inputs, t % 3 == 2 ? &counts : nullptr, products);
        EXPECT_EQ(result.ok(), t % 3 != 1);
        if (t % 3 == 2) {
          EXPECT_EQ(counts.kernels, kProducts);
          EXPECT_EQ(counts.copies, *GetParam() == 0 ? 0 : 2);
        }
        EXPECT_TRUE((*executable)->run(inputs, nullptr, count).ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// A run that gets no memory for what it needs fails; those after it may find some.
TEST_P(FakeDevice, TriesAgainWhereThereWasNoMemory) {
  const auto backend = OpenClBackend::create("");
  if (!backend.ok() || (*backend)->device().name != "fake device") GTEST_SKIP() << "the loader is not the fake one";
  for (int call = 1; call <= 12; ++call) {
    const std::string how = fmt::format("{}{}memory-once:{}", GetParam(), *GetParam() == 0 ? "" : ",", call);
    setenv("FAKE_OPENCL", how.c_str(), 1);
    std::string text =
        "module {\n  placeholder @x : f32[2,2]\n  placeholder @y : f32[2,2]\n  func @main {\n    %p0 = Abs(@x)\n";
    for (int i = 1; i <= 200; ++i) text += fmt::format("    %p{} = MatMul(%p{}, @x)\n", i, i - 1);
    auto module = parseModule(text + "    Save(%p200, @y)\n  }\n}");
    ASSERT_TRUE(module.ok()) << module.error().text();
    auto compiled = compileModule(*std::move(module), {.backend = "opencl"});
    ASSERT_TRUE(compiled.ok());
    const auto executable = load(*std::move(compiled), {.contexts = 3});
    if (!executable.ok()) continue;
    const std::vector inputs = {Tensor::of(Type(ElemKind::Float32, Shape{2, 2}), std::vector<double>{1, 2, 3, 4})};
    std::atomic<int64_t> failed = 0;
    std::latch together(3);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        together.arrive_and_wait();
        for (int run = 0; run < 20; ++run) failed += (*executable)->run(inputs).ok() ? 0 : 1;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(failed, 1) << how;
  }
}

}  // namespace

}  // namespace aglow
