#include "support/stop.h"

#include <gtest/gtest.h>

#include <thread>

#include "backends/interpreter/interpreter.h"
#include "compile/compile.h"
#include "graph/text.h"

namespace aglow {

namespace {

TEST(StopScope, IsTheThreadsOwn) {
  EXPECT_FALSE(StopScope::present());
  EXPECT_TRUE(StopScope::check().ok());
  const StopScope scope([] { return true; });
  EXPECT_TRUE(StopScope::present());
  EXPECT_EQ(StopScope::check().error().code, Code::Cancelled);
  std::thread([] { EXPECT_FALSE(StopScope::present()); }).join();
}

TEST(StopScope, NestsAndMayBeEmpty) {
  const StopScope outer([] { return true; });
  {
    const StopScope inner([] { return false; });
    EXPECT_TRUE(StopScope::check().ok());
  }
  {
    const StopScope nobody(nullptr);
    EXPECT_FALSE(StopScope::present());
    EXPECT_TRUE(StopScope::check().ok());
  }
  EXPECT_FALSE(StopScope::check().ok());
}

TEST(StopScope, EndsTheInterpreterBetweenInstructions) {
  auto module = parseModule(R"(module {
  placeholder @x : f32[1,1]
  placeholder @y : f32[1,1]
  func @main {
    %a = MatMul(@x, @x)
    %b = MatMul(%a, @x)
    Save(%b, @y)
  }
})");
  ASSERT_TRUE(module.ok()) << module.error().text();
  CompileOptions options;
  options.backend = kReferenceBackend;
  auto compiled = compileModule(*std::move(module), options);
  ASSERT_TRUE(compiled.ok());
  auto executable = load(*std::move(compiled));
  ASSERT_TRUE(executable.ok());
  const std::vector inputs = {Tensor::of(Type(ElemKind::Float32, Shape{1, 1}), std::vector<double>{3})};
  int asked = 0;
  const StopScope scope([&] { return ++asked > 1; });
  const auto ended = (*executable)->run(inputs);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::Cancelled);
  EXPECT_EQ(asked, 2);
}

}  // namespace

}  // namespace aglow
