// Dead code, sharing and whole pipelines: what they remove, and that random graphs keep their meaning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "lower/lower.h"
#include "optimize/optimize.h"
#include "optimize/passes.h"
#include "optimize/rules.h"
#include "random_graph.h"

namespace aglow {
namespace {

using namespace testing_support;  // NOLINT

struct OptimizeTest : testing::Test {
  Value in(Shape shape = {2, 3}) { return b.input("x", Type(ElemKind::Float32, std::move(shape))); }

  Module module;
  Function& f = *module.addFunction("f");
  Builder b{f};
  ReferenceEvaluator evaluator;
  PassContext context{evaluator};
};

TEST_F(OptimizeTest, DeadCodeGoesWithItsConstants) {
  const Value x = in();
  b.exp(b.add(x, b.scalarLike(x, 2)));
  b.output("y", b.neg(x));
  EXPECT_TRUE(*deadCodePass().run(f, context));
  EXPECT_THAT(opsOf(f), testing::ElementsAre("Neg"));
  EXPECT_TRUE(module.constants().empty());
  EXPECT_EQ(module.placeholders().size(), 2u);
  EXPECT_FALSE(*deadCodePass().run(f, context));
}

TEST_F(OptimizeTest, EqualNodesAndConstantsAreShared) {
  const Value x = in(), y = in();
  const Value one = b.scalarLike(x, 1), again = b.scalarLike(x, 1);
  b.output("a", b.add(b.mul(x, y), one));
  b.output("b", b.add(again, b.mul(y, x)));
  b.output("c", b.sub(b.exp(x), b.exp(x)));
  EXPECT_TRUE(*sharingPass().run(f, context));
  EXPECT_THAT(opsOf(f), testing::ElementsAre("Mul", "Add", "Exp", "Sub"));
  EXPECT_EQ(module.constants().size(), 1u);
  EXPECT_FALSE(*sharingPass().run(f, context));
}

TEST_F(OptimizeTest, ReadsOfWhatASaveChangedAreNotShared) {
  Placeholder* state = module.addPlaceholder("state", Type(ElemKind::Float32, {2}));
  b.output("a", b.exp(state->result()));
  b.save(b.neg(state->result()), state);
  b.output("b", b.exp(state->result()));
  EXPECT_FALSE(*sharingPass().run(f, context));
}

TEST_F(OptimizeTest, DifferentNodesAreNotShared) {
  const Value x = in(), y = in(), p = b.input("p", Type(ElemKind::Bool, {}));
  b.output("a", b.sub(x, y));
  b.output("b", b.sub(y, x));
  b.output("c", b.leakyRelu(x, {.alpha = 0.1}));
  b.output("d", b.leakyRelu(x, {.alpha = 0.2}));
  b.output("e", b.when(p).sub(x, y));
  EXPECT_FALSE(*sharingPass().run(f, context));
}

TEST_F(OptimizeTest, FoldingStopsAtLargeResults) {
  const Value c = b.constant(Tensor::of<float>(Type(ElemKind::Float32, {1, 2}), {1, 2}));
  b.output("y", b.expand(c, {.shape = {100000, 2}}));
  b.output("z", b.neg(b.expand(c, {.shape = {8, 2}})));
  ASSERT_TRUE(optimizePipeline().run(f, context).ok());
  EXPECT_THAT(opsOf(f), testing::ElementsAre("Expand"));
}

TEST_F(OptimizeTest, NodesThatFailAreLeftForRunTime) {
  const Value data = b.constant(Tensor::ints({1, 2, 3})), index = b.constant(Tensor::ints({7}));
  b.output("y", b.gather(data, index, {.axis = 0}));
  ASSERT_TRUE(optimizePipeline().run(f, context).ok());
  EXPECT_THAT(opsOf(f), testing::ElementsAre("Gather"));
}

TEST_F(OptimizeTest, DisabledRulesAndPassesDoNothing) {
  const Value x = in();
  b.output("y", b.mul(b.exp(b.neg(b.neg(x))), b.exp(b.neg(b.neg(x)))));
  context.disabled = {"neg-neg", "share"};
  ASSERT_TRUE(optimizePipeline().run(f, context).ok());
  EXPECT_EQ(countOf(f, Op::Neg), 4);
  context.disabled.clear();
  ASSERT_TRUE(optimizePipeline().run(f, context).ok());
  EXPECT_EQ(countOf(f, Op::Neg), 0);
  EXPECT_GE(context.statistics["neg-neg"], 1);
}

TEST_F(OptimizeTest, TransposesAroundLayersCancel) {
  // The way channels-last models come: transposes around every layer that wants channels first.
  const std::vector<int64_t> toFirst{0, 3, 1, 2}, toLast{0, 2, 3, 1};
  Value x = in({1, 4, 4, 2});
  for (int i = 0; i < 3; ++i) {
    const Value y = b.transpose(b.maxPool(b.transpose(x, {.perm = toFirst}), {.kernel = {1, 1}}), {.perm = toLast});
    const Value scale = b.constant(Tensor::of<float>(Type(ElemKind::Float32, {2}), {2, 3}));
    x = b.relu(i == 0 ? b.mul(y, scale) : b.add(b.mul(y, scale), x));
  }
  b.output("y", x);
  Function& before = *module.clone(f, "before");
  ASSERT_TRUE(optimizePipeline().run(f, context).ok());
  EXPECT_LE(countOf(f, Op::Transpose), 2);
  Rng rng(1);
  EXPECT_TRUE(sameResults(before, f, randomBindings(rng, before)));
}

TEST_F(OptimizeTest, LargeGraphsTakeLittleTime) {
  Value x = in();
  for (int i = 0; i < 2000; ++i) {
    x = b.add(b.mul(b.transpose(x, {.perm = {1, 0}}), b.scalarLike(x, 1.01)), b.scalarLike(x, 0.5));
    x = b.transpose(b.relu(x), {.perm = {1, 0}});
  }
  b.output("y", x);
  ASSERT_TRUE(optimizePipeline().run(f, context).ok());
  EXPECT_EQ(countOf(f, Op::Transpose), 0);
  EXPECT_EQ(f.size(), 6001u);
}

TEST_F(OptimizeTest, WideConcatenationsTakeLittleTime) {
  const Value x = in({1, 2});
  std::vector<Value> parts;
  for (int i = 0; i < 4000; ++i) parts.push_back(b.neg(b.neg(b.mul(x, b.scalarLike(x, i)))));
  b.output("y", b.concat(parts, {.axis = 0}));
  ASSERT_TRUE(optimizePipeline().run(f, context).ok());
  EXPECT_EQ(countOf(f, Op::Neg), 0);
}

// Random graphs over all operators. Rules that keep bits keep every result exactly. The others must leave a valid
// graph; comparisons and indices may make much of their rounding.
struct RandomGraphs : testing::TestWithParam<int> {};

TEST_P(RandomGraphs, KeepTheirMeaning) {
  for (int i = 0; i < 20; ++i) {
    const auto seed = static_cast<uint64_t>(GetParam() * 1000 + i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Module module;
    RandomGraph random(module, seed, {.maxElements = 256, .constants = 0.5});
    Function& before = *random.addFunction("before", 25);
    Rng rng(seed);
    const NamedTensors bindings = randomBindings(rng, before, seed % 2 == 0);
    for (const bool bits : {true, false}) {
      Function& after = *module.clone(before, bits ? "exact" : "rounded");
      ReferenceEvaluator evaluator;
      PassContext context{evaluator};
      for (const RuleTheme& theme : ruleThemes())
        for (const Rule& rule : theme.rules)
          if (bits && rule.keeps != Keeps::Bits) context.disabled.emplace(rule.name);
      for (const bool lowered : {false, true}) {
        if (lowered && !lower(after).ok()) break;  // a use that no backend supports
        const auto report = (lowered ? loweredPipeline() : optimizePipeline()).run(after, context);
        ASSERT_TRUE(report.ok()) << report.error().text();
        const Status valid = verify(module);
        ASSERT_TRUE(valid.ok()) << valid.error().text() << print(before);
        if (bits) ASSERT_TRUE(sameResults(before, after, bindings, true)) << print(before) << print(after);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimize, RandomGraphs, testing::Range(0, 10));

}  // namespace
}  // namespace aglow
