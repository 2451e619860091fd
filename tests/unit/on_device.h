// Tests of kernels on whatever OpenCL device the machine has; without one there is nothing to see.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/opencl/opencl.h"
#include "backends/plan.h"
#include "compile/compile.h"
#include "compile/evaluate.h"
#include "evaluate.h"
#include "fuse/fuse.h"
#include "graph/text.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "memory/pass_table.h"
#include "random_graph.h"

namespace aglow {

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
    auto made = OpenClBackend::create("", {.shape = shape, .f64Pairs = shape && shape->pairs});
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

  // Of a program as it is given, without the phases that make it.
  Result<std::unique_ptr<Executable>> placed(std::string_view text) const {
    AGLOW_TRY(Program program, parseProgram(text));
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

inline constexpr codegen::DeviceShape kOfGroups{.sharesLocal = true, .groupItems = 256, .localBytes = 32 << 10};
inline constexpr codegen::DeviceShape kOfItems{.sharesLocal = false, .groupItems = 64, .localBytes = 64 << 10};

// Kernels as a GPU gets them, whatever the device is.
class OnGroups : public OnDevice {
protected:
  void SetUp() override { choose(kOfGroups); }
};

// Kernels as a GPU gets them, and as a processor does.
class OnBoth : public OnDevice, public ::testing::WithParamInterface<bool> {
public:
  static std::string nameOf(const ::testing::TestParamInfo<bool>& chosen) { return chosen.param ? "Groups" : "Items"; }

protected:
  void SetUp() override { choose(GetParam() ? kOfGroups : kOfItems); }
};

}  // namespace aglow
