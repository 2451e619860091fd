// Networks by themselves: modules with several functions over one state, run by name and from several threads.
#include "runtime/network.h"

#include <gmock/gmock.h>

#include <thread>

#include "counter_module.h"
#include "graph/text.h"
#include "host_backends.h"
#include "runtime/threads.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::kCounter;
using Values = std::map<std::string, ModelValue>;

Tensor row(double a, double b) { return Tensor::of(Type(ElemKind::Float32, Shape{2}), std::vector<double>{a, b}); }

Compilation compiled(std::string_view text, const std::string& backend, std::vector<Interface> interfaces = {}) {
  auto module = parseModule(text);
  EXPECT_TRUE(module.ok()) << module.error().text();
  CompileOptions options;
  options.backend = backend;
  auto result = interfaces.empty() ? compileModule(*std::move(module), options)
                                   : compileModule(*std::move(module), std::move(interfaces), options);
  EXPECT_TRUE(result.ok()) << result.diagnostics().errors().front().text();
  return *std::move(result);
}

class OnNetwork : public ::testing::TestWithParam<std::string> {
protected:
  std::unique_ptr<Network> loaded(std::string_view text, std::vector<Interface> interfaces = {}) const {
    BackendOptions options{.threads = 2};
    startThreads(options);
    auto network = Network::load(compiled(text, GetParam(), std::move(interfaces)), options);
    EXPECT_TRUE(network.ok()) << network.error().text();
    return *std::move(network);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, OnNetwork, ::testing::ValuesIn(testing_support::hostBackends()));

std::vector<double> added(Network& network, double a, double b) {
  const Values values = {{"step", ModelValue::of(row(a, b))}};
  auto outputs = network.run(*network.find("add"), valuesIn(values));
  EXPECT_TRUE(outputs.ok()) << outputs.error().text();
  return outputs.ok() ? outputs->at(0).tensor().doubles() : std::vector<double>{};
}

TEST_P(OnNetwork, RunsFunctionsByNameOverOneState) {
  const std::unique_ptr<Network> counter = loaded(kCounter);
  ASSERT_EQ(counter->functions().size(), 2u);
  EXPECT_EQ(counter->functions()[*counter->find("add")].outputs.at(0).name, "total");
  EXPECT_THAT(added(*counter, 10, 20), ElementsAre(11, 22));
  EXPECT_THAT(added(*counter, 10, 20), ElementsAre(21, 42));
  const auto nothing = counter->run(*counter->find("reset"), valuesIn({}));
  ASSERT_TRUE(nothing.ok());
  EXPECT_TRUE(nothing->empty());
  EXPECT_THAT(added(*counter, 1, 2), ElementsAre(1, 2));

  ASSERT_EQ(counter->states().size(), 1u);
  EXPECT_EQ(counter->findState("count"), 0u);
  EXPECT_EQ(counter->findState("total"), 1u);
  ASSERT_TRUE(counter->setState(0, row(5, 6).ref()).ok());
  EXPECT_THAT(added(*counter, 1, 1), ElementsAre(6, 7));
  EXPECT_EQ(counter->setState(0, Tensor::ints({1}).ref()).error().code, Code::BadBinding);
  counter->resetState();
  EXPECT_THAT(counter->state(0)->doubles(), ElementsAre(1, 2));
}

TEST_P(OnNetwork, RunsOfSeveralThreadsTakeTurns) {
  const std::unique_ptr<Network> counter = loaded(kCounter);
  constexpr int kThreads = 4, kRuns = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      double last = 0;
      for (int i = 0; i < kRuns; ++i) {
        const std::vector<double> total = added(*counter, 1, 1);
        EXPECT_GT(total.at(0), last);
        EXPECT_EQ(total.at(1), total.at(0) + 1);  // nobody else was in between
        last = total.at(0);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(counter->state(0)->doubles(), ElementsAre(1 + kThreads * kRuns, 2 + kThreads * kRuns));
}

TEST_P(OnNetwork, WritesIntoTheCallersMemory) {
  const std::unique_ptr<Network> counter = loaded(kCounter);
  const size_t add = *counter->find("add");
  const Tensor step = row(1, 1), total(Type(ElemKind::Float32, Shape{2}));
  ASSERT_TRUE(counter->run(add, std::vector{step.ref()}, std::vector{total.ref()}).ok());
  EXPECT_THAT(total.doubles(), ElementsAre(2, 3));
  EXPECT_EQ(counter->run(add, std::vector<TensorRef>{}, std::vector{total.ref()}).error().code, Code::BadBinding);
}

TEST_P(OnNetwork, SaysWhichInputIsMissingOrDoesNotFit) {
  const std::unique_ptr<Network> counter = loaded(kCounter);
  const size_t add = *counter->find("add");
  const auto missing = counter->run(add, valuesIn({}));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::MissingBinding);
  EXPECT_EQ(missing.error().message, "input 'step' of type f32[2] was not given");
  const Values wrong = {{"step", ModelValue::of(Tensor::ints({1, 2}))}};
  const auto misfit = counter->run(add, valuesIn(wrong));
  ASSERT_FALSE(misfit.ok());
  EXPECT_EQ(misfit.error().code, Code::BadBinding);
  EXPECT_THAT(misfit.error().text(), HasSubstr("expected f32[2], got i64[2]"));
  EXPECT_EQ(counter->find("sub").error().code, Code::Usage);
  EXPECT_THAT(added(*counter, 1, 1), ElementsAre(2, 3));  // the state is what it was
}

// An interface of its own: a sequence and an optional in, a sequence out, under other names than the placeholders'.
TEST_P(OnNetwork, BindsValuesByThePortsOfTheInterface) {
  constexpr const char* kText = R"(module {
  placeholder @a : f32[2]
  placeholder @b : f32[2]
  placeholder @y0 : f32[2]
  placeholder @y1 : f32[2]
  func @main {
    %s = Add(@a, @b)
    %d = Sub(@a, @b)
    Save(%s, @y0)
    Save(%d, @y1)
  }
})";
  const auto tensor = [](const std::string& name) {
    return Port{.kind = Port::Kind::Tensor,
                .name = name,
                .placeholder = name,
                .type = Type(ElemKind::Float32, Shape{2}),
                .items = {}};
  };
  const auto sequence = [&](const std::string& name, const std::string& first, const std::string& second) {
    return Port{.kind = Port::Kind::Sequence,
                .name = name,
                .placeholder = {},
                .type = {},
                .items = {tensor(first), tensor(second)}};
  };
  const Port none{.kind = Port::Kind::None, .name = "n", .placeholder = {}, .type = {}, .items = {}};
  const std::unique_ptr<Network> network = loaded(
      kText,
      {{.function = "main", .inputs = {sequence("x", "a", "b"), none}, .outputs = {sequence("y", "y1", "y0"), none}}});
  const Values values = {{"x", ModelValue::sequence({row(3, 4), row(1, 1)})}};
  auto outputs = network->run(*network->find(), valuesIn(values));
  ASSERT_TRUE(outputs.ok()) << outputs.error().text();
  ASSERT_EQ(outputs->size(), 2u);
  ASSERT_TRUE(outputs->at(0).isSequence);
  EXPECT_THAT(outputs->at(0).tensors.at(0).doubles(), ElementsAre(2, 3));
  EXPECT_THAT(outputs->at(0).tensors.at(1).doubles(), ElementsAre(4, 5));
  EXPECT_TRUE(outputs->at(1).none);
  const Values one = {{"x", ModelValue::sequence({row(3, 4)})}};
  EXPECT_EQ(network->run(0, valuesIn(one)).error().code, Code::MissingBinding);
}

TEST_P(OnNetwork, TakesMemoryOfEarlierOutputsThatNobodyHolds) {
  const std::unique_ptr<Network> counter = loaded(kCounter);
  const size_t add = *counter->find("add");
  const Values values = {{"step", ModelValue::of(row(1, 1))}};
  const auto run = [&](Network::OutputMemory memory) {
    return counter->run(add, valuesIn(values), memory)->at(0).tensor();
  };
  constexpr auto kReused = Network::OutputMemory::Reused;
  const Tensor held = run(kReused);
  const std::byte* again = run(kReused).data();
  EXPECT_NE(again, held.data());
  EXPECT_EQ(run(kReused).data(), again);
  EXPECT_THAT(held.doubles(), ElementsAre(2, 3));  // whoever holds an output keeps it as it was
  const Tensor fresh = run(Network::OutputMemory::Fresh);
  EXPECT_NE(fresh.data(), again);
  EXPECT_THAT(fresh.doubles(), ElementsAre(5, 6));
}

TEST(Network, StaysBelowTheMemoryLimit) {
  const auto network = Network::load(compiled(kCounter, std::string(kReferenceBackend)), {.memoryLimit = 1});
  ASSERT_FALSE(network.ok());
  EXPECT_EQ(network.error().code, Code::TooLarge);
}

TEST(Network, TensorsWithoutScalesTakeThoseOfTheProgram) {
  const Type quantized = *Type::quantized(ElemKind::QInt8, Shape{2}, {.scales = {0.5f}, .offsets = {3}});
  const Tensor plain = Tensor::fromInts(Type(ElemKind::Int8, Shape{2}), {1, 2});
  EXPECT_EQ(withScales(plain, quantized).type(), quantized);
  EXPECT_EQ(withScales(row(1, 2), quantized).type(), row(1, 2).type());
  EXPECT_EQ(withScales(Tensor::fromInts(Type(ElemKind::Int8, Shape{3}), {1, 2, 3}), quantized).type().dim(0), 3);
}

TEST(RunModule, GivesOutputsByName) {
  const auto module = [] { return *parseModule(kCounter); };
  CompileOptions options;
  options.functions = {"add"};
  const auto outputs = runModule(module(), {{"step", row(1, 1)}}, options);
  ASSERT_TRUE(outputs.ok()) << outputs.error().text();
  EXPECT_THAT(outputs->at("total").doubles(), ElementsAre(2, 3));
  EXPECT_EQ(runModule(module(), {{"step", row(1, 1)}, {"stop", row(1, 1)}}, options).error().code, Code::BadBinding);
  EXPECT_EQ(runModule(module(), {}, options).error().code, Code::MissingBinding);
  EXPECT_EQ(runModule(module(), {}).error().code, Code::Usage);  // which of the two functions?
}

}  // namespace
}  // namespace aglow
