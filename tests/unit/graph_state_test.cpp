// State: placeholders with a value of their own, which functions share and change.
#include <gmock/gmock.h>

#include "compile/evaluate.h"
#include "counter_module.h"
#include "graph/builder.h"
#include "graph/dot.h"
#include "graph/equality.h"
#include "graph/saves.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "round_trip.h"

namespace aglow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_support::kCounter;

std::unique_ptr<Module> parsed(std::string_view text) {
  auto module = parseModule(text);
  EXPECT_TRUE(module.ok()) << module.error().text();
  EXPECT_TRUE(verify(**module).ok());
  return *std::move(module);
}

TEST(GraphState, IsNeitherInputNorOutput) {
  const std::unique_ptr<Module> module = parsed(kCounter);
  expectRoundTrip(*module);
  const Function &add = *module->findFunction("add"), &reset = *module->findFunction("reset");
  auto* count = static_cast<Placeholder*>(module->findStorage("count"));
  ASSERT_TRUE(count->isState());
  EXPECT_THAT(count->initial().doubles(), ElementsAre(1, 2));
  EXPECT_THAT(inputsOf(add), ElementsAre(module->findStorage("step")));
  EXPECT_THAT(outputsOf(add), ElementsAre(module->findStorage("total")));
  EXPECT_THAT(inputsOf(reset), IsEmpty());
  EXPECT_THAT(outputsOf(reset), IsEmpty());
  EXPECT_THAT(statesOf(add), ElementsAre(count));
  EXPECT_THAT(statesOf(reset), ElementsAre(count));
}

TEST(GraphState, IsPrintedAndDrawn) {
  Module module;
  Builder b(*module.addFunction("main"));
  Placeholder* count = b.state("count", Tensor::of(Type(ElemKind::Int64, Shape{1}), std::vector<int>{7}));
  b.save(b.add(count->result(), count->result()), count);
  EXPECT_THAT(print(module), HasSubstr("state @count : i64[1] = [7]\n"));
  EXPECT_THAT(drawDot(module), HasSubstr("count\\nState\\ni64[1]"));
  expectRoundTrip(module);
}

TEST(GraphState, InitialValuesTellModulesApart) {
  const std::unique_ptr<Module> a = parsed("module { state @s : f32[] = [1] }");
  const std::unique_ptr<Module> b = parsed("module { state @s : f32[] = [2] }");
  const std::unique_ptr<Module> c = parsed("module { placeholder @s : f32[] }");
  EXPECT_EQ(difference(*a, *a), "");
  EXPECT_NE(difference(*a, *b), "");
  EXPECT_NE(difference(*a, *c), "");
  EXPECT_NE(difference(*c, *a), "");
  EXPECT_NE(structuralHash(*a), structuralHash(*b));
  EXPECT_NE(structuralHash(*a), structuralHash(*c));
}

TEST(GraphState, NeedsAnInitialValueOfItsType) {
  EXPECT_FALSE(parseModule("module { state @s : f32[2] }").ok());
  EXPECT_FALSE(parseModule("module { state @s : f32[2] = [1] }").ok());
}

TEST(GraphState, StaysBetweenEvaluations) {
  const std::unique_ptr<Module> module = parsed(kCounter);
  const Tensor step = Tensor::of(Type(ElemKind::Float32, Shape{2}), std::vector<int>{10, 20});
  NamedTensors state;
  for (const double times : {1.0, 2.0}) {
    const auto outputs = evaluateFunction(*module->findFunction("add"), {{"step", step}}, &state);
    ASSERT_TRUE(outputs.ok()) << outputs.error().text();
    EXPECT_THAT(outputs->at(0).doubles(), ElementsAre(1 + 10 * times, 2 + 20 * times));
  }
  ASSERT_TRUE(evaluateFunction(*module->findFunction("reset"), {}, &state).ok());
  EXPECT_THAT(state.at("count").doubles(), ElementsAre(0, 0));
  // Without a place to keep it, every evaluation begins with the initial value.
  const auto outputs = evaluateFunction(*module->findFunction("add"), {{"step", step}});
  EXPECT_THAT(outputs->at(0).doubles(), ElementsAre(11, 22));
}

// The third value reads what was saved, the others what was there before.
constexpr const char* kReadsAndWrites = R"(module {
  state @s : f32[2] = [1, 2]
  placeholder @before : f32[2]
  placeholder @after : f32[2]
  func @main {
    %twice = Add(@s, @s)
    Save(%twice, @s)
    %negative = Neg(%twice)
    %again = Add(@s, @s)
    Save(%negative, @before)
    Save(%again, @after)
  }
})";

TEST(GraphState, SavesSettleAtTheEnd) {
  const std::unique_ptr<Module> module = parsed(kReadsAndWrites);
  Function& function = *module->functions().front();
  NamedTensors before, after;
  const auto expected = evaluateFunction(function, {}, &before);
  settleSaves(function);
  ASSERT_TRUE(verify(*module).ok());
  const auto settled = evaluateFunction(function, {}, &after);
  ASSERT_TRUE(expected.ok() && settled.ok());
  EXPECT_EQ(*expected, *settled);
  EXPECT_EQ(before, after);
  EXPECT_THAT(expected->at(1).doubles(), ElementsAre(4, 8));
  // Only nodes ahead of every Save read the state.
  EXPECT_EQ(function.back()->op(), Op::Save);
  EXPECT_EQ(function.back()->input(1).node, module->findStorage("s"));
  const auto again = std::find_if(function.nodes().begin(), function.nodes().end(),
                                  [](const auto& node) { return node->name() == "again"; });
  EXPECT_EQ((*again)->input(0).node->name(), "twice");
}

}  // namespace
}  // namespace aglow
