// Patterns, the driver of rules and the pipeline, on rules made for the purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "rewrite/pipeline.h"
#include "rewrite/rule.h"

namespace aglow {
namespace {

using namespace pattern;  // NOLINT

struct NoEvaluator : Evaluator {
  Result<std::vector<Tensor>> evaluate(const Node&, std::span<const Tensor>) override {
    return Error{Code::Internal, "not asked for"};
  }
};

struct RewriteTest : testing::Test {
  Value in(Shape shape = {2, 3}) { return b.input("x", Type(ElemKind::Float32, std::move(shape))); }
  bool fits(const Pattern& p, Value v) {
    return match(p, *v.node, [&](const Captures& c) {
      captures = c;
      return true;
    });
  }
  std::vector<std::string> ops() const {
    std::vector<std::string> names;
    for (const auto& node : f.nodes()) names.emplace_back(node->def().name);
    return names;
  }

  Module module;
  Function& f = *module.addFunction("f");
  Builder b{f};
  Captures captures;
  NoEvaluator evaluator;
  PassContext context{evaluator};
};

TEST_F(RewriteTest, CapturesOperands) {
  const Value x = in();
  const Value y = b.neg(b.exp(x));
  EXPECT_TRUE(fits(op(Op::Neg, {op(Op::Exp, {any(0)}).as(1)}), y));
  EXPECT_EQ(captures[0], x);
  EXPECT_EQ(captures[1], y.node->input(0));
  EXPECT_FALSE(fits(op(Op::Neg, {op(Op::Log, {any(0)})}), y));
}

TEST_F(RewriteTest, TriesCommutativeOperandsBothWays) {
  const Value x = in(), e = b.exp(x);
  EXPECT_TRUE(fits(op(Op::Add, {op(Op::Exp), any(0)}), b.add(e, x)));
  EXPECT_TRUE(fits(op(Op::Add, {op(Op::Exp), any(0)}), b.add(x, e)));
  EXPECT_EQ(captures[0], x);
  EXPECT_FALSE(fits(op(Op::Sub, {op(Op::Exp), any(0)}), b.sub(x, e)));
}

TEST_F(RewriteTest, TakesBackAWrongChoice) {
  // The first order binds 0 to the Exp, which then is not the operand of the Neg.
  const Value x = in(), e = b.exp(x);
  const Value y = b.mul(b.add(e, x), b.neg(x));
  EXPECT_TRUE(fits(op(Op::Mul, {op(Op::Add, {any(0), any(1)}), op(Op::Neg, {any(0)})}), y));
  EXPECT_EQ(captures[0], x);
  EXPECT_EQ(captures[1], e);
}

TEST_F(RewriteTest, SameCaptureMeansSameValue) {
  const Value x = in(), y = in();
  EXPECT_TRUE(fits(op(Op::Mul, {any(0), any(0)}), b.mul(x, x)));
  EXPECT_FALSE(fits(op(Op::Mul, {any(0), any(0)}), b.mul(x, y)));
}

TEST_F(RewriteTest, NumbersAreConstantsOrSplats) {
  const Value x = in();
  EXPECT_TRUE(fits(op(Op::Mul, {any(0), literal(2)}), b.mul(x, b.scalarLike(x, 2))));
  EXPECT_TRUE(fits(op(Op::Mul, {any(0), literal(2)}), b.mul(x, b.splat({.value = 2, .shape = {2, 3}}))));
  EXPECT_FALSE(fits(op(Op::Mul, {any(0), literal(2)}), b.mul(x, b.scalarLike(x, 2.000001))));
  EXPECT_TRUE(fits(op(Op::Mul, {any(0), number(1)}), b.mul(x, b.scalarLike(x, 7))));
  const Value mixed = b.constant(Tensor::of<float>(Type(ElemKind::Float32, {3}), {1, 2, 1}));
  EXPECT_FALSE(fits(op(Op::Mul, {any(0), number(1)}), b.mul(x, mixed)));
}

TEST_F(RewriteTest, AlternativesAndAbsentOperands) {
  const Value x = in({1, 2, 4, 4}), w = in({3, 2, 1, 1});
  const Value y = b.conv(x, w, {});
  EXPECT_TRUE(fits(op(Op::Conv, {any(0), any(1), absent()}), y));
  EXPECT_FALSE(fits(op(Op::Conv, {any(0), any(1), any(2)}), y));
  EXPECT_TRUE(fits(op(Op::Conv, {any(0), any(1), either({absent(), any(2)})}), y));
  EXPECT_FALSE(captures[2]);
}

TEST_F(RewriteTest, OnceAsksForASingleUse) {
  const Value x = in(), e = b.exp(x);
  const Value y = b.neg(e);
  EXPECT_TRUE(fits(op(Op::Neg, {op(Op::Exp).once()}), y));
  b.abs(e);
  EXPECT_FALSE(fits(op(Op::Neg, {op(Op::Exp).once()}), y));
}

TEST_F(RewriteTest, PredicatesMustAgree) {
  const Value x = in();
  const Value p = b.input("p", Type(ElemKind::Bool, {}));
  const Value e = b.when(p).exp(x);
  const Value y = b.when({}).neg(e), z = b.when(p).neg(e);
  EXPECT_FALSE(fits(op(Op::Neg, {op(Op::Exp)}), y));
  EXPECT_TRUE(fits(op(Op::Neg, {op(Op::Exp)}), z));
}

TEST_F(RewriteTest, CommutativityComesFromTheFormula) {
  for (const Op yes : {Op::Add, Op::Mul, Op::Min, Op::Max, Op::Equal, Op::And, Op::BitXor})
    EXPECT_TRUE(isCommutative(yes)) << opDef(yes).name;
  for (const Op no : {Op::Sub, Op::Div, Op::Pow, Op::Less, Op::PRelu, Op::MatMul, Op::Relu, Op::ShiftLeft})
    EXPECT_FALSE(isCommutative(no)) << opDef(no).name;
}

const Rule kDoubleNeg{.name = "double-neg",
                      .pattern = op(Op::Neg, {op(Op::Neg, {any(0)})}),
                      .build = [](const Match& m, Builder&) -> Values { return {m[0]}; }};

TEST_F(RewriteTest, AppliesToAFixedPointAndErasesWhatIsDead) {
  const Value x = in();
  Value y = x;
  for (int i = 0; i < 7; ++i) y = b.neg(y);
  b.output("y", y);
  const RuleSet rules{{kDoubleNeg}};
  EXPECT_TRUE(*rewrite(f, rules, context));
  EXPECT_THAT(ops(), testing::ElementsAre("Neg", "Save"));
  EXPECT_EQ(context.statistics["double-neg"], 3);
  EXPECT_FALSE(*rewrite(f, rules, context));
}

TEST_F(RewriteTest, LeavesDisabledRulesOut) {
  b.output("y", b.neg(b.neg(in())));
  context.disabled.insert("double-neg");
  EXPECT_FALSE(*rewrite(f, RuleSet{{kDoubleNeg}}, context));
  EXPECT_EQ(f.size(), 3u);
}

TEST_F(RewriteTest, RuleThatDeclinesLeavesNothingBehind) {
  const Rule declines{.name = "declines", .pattern = op(Op::Neg), .build = [](const Match& m, Builder& rb) -> Values {
                        rb.exp(rb.add(m.root().input(0), rb.scalarLike(m.result(), 1)));
                        return {};
                      }};
  b.output("y", b.neg(in()));
  const size_t storage = module.storage().size();
  EXPECT_FALSE(*rewrite(f, RuleSet{{declines}}, context));
  EXPECT_THAT(ops(), testing::ElementsAre("Neg", "Save"));
  EXPECT_EQ(module.storage().size(), storage);
}

TEST_F(RewriteTest, ConditionChoosesAmongTheWaysToMatch) {
  const Rule rule{.name = "pick",
                  .pattern = op(Op::Add, {any(0), any(1)}),
                  .condition = [](const Match& m) { return m[1].node->op() == Op::Exp; },
                  .build = [](const Match& m, Builder& rb) -> Values { return {rb.sub(m[0], rb.neg(m[1]))}; }};
  const Value x = in();
  b.output("y", b.add(b.exp(x), x));
  EXPECT_TRUE(*rewrite(f, RuleSet{{rule}}, context));
  EXPECT_THAT(ops(), testing::ElementsAre("Exp", "Neg", "Sub", "Save"));
}

TEST_F(RewriteTest, ErasesConstantsThatLoseTheirLastUse) {
  const Rule drop{.name = "drop",
                  .pattern = op(Op::Add, {any(0), constant(1)}),
                  .build = [](const Match& m, Builder&) -> Values { return {m[0]}; }};
  const Value x = in(), c = b.scalarLike(x, 1);
  b.output("y", b.add(b.add(x, c), c));
  EXPECT_TRUE(*rewrite(f, RuleSet{{drop}}, context));
  EXPECT_TRUE(module.constants().empty());
}

TEST_F(RewriteTest, NewNodesCarryTheScalarPredicateAndRowsAreLeftAlone) {
  const Rule rule{.name = "to-sub",
                  .pattern = op(Op::Add, {any(0), any(1)}),
                  .build = [](const Match& m, Builder& rb) -> Values { return {rb.sub(m[0], rb.neg(m[1]))}; }};
  const Value x = in(), p = b.input("p", Type(ElemKind::Bool, {})), rows = b.input("r", Type(ElemKind::Bool, {2}));
  b.output("y", b.when(p).add(x, x));
  b.output("z", b.when(rows).add(x, x));
  EXPECT_TRUE(*rewrite(f, RuleSet{{rule}}, context));
  EXPECT_THAT(ops(), testing::UnorderedElementsAre("Neg", "Sub", "Add", "Save", "Save"));
  for (const auto& node : f.nodes())
    if (node->op() != Op::Save) EXPECT_EQ(node->predicate(), node->op() == Op::Add ? rows : p);
}

TEST_F(RewriteTest, RulesThatNeverSettleAreNamed) {
  const Rule swap{.name = "swap-forever",
                  .pattern = op(Op::Add, {any(0), any(1)}),
                  .build = [](const Match& m, Builder& rb) -> Values { return {rb.add(m[1], m[0])}; }};
  const Value x = in();
  b.output("y", b.add(x, b.exp(x)));
  try {
    (void)rewrite(f, RuleSet{{swap}}, context);
    FAIL() << "settled";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("swap-forever"));
  }
}

TEST_F(RewriteTest, WrongTypesAndBadBuildsNameTheRule) {
  const Rule wrong{.name = "wrong-type", .pattern = op(Op::Neg), .build = [](const Match& m, Builder& rb) -> Values {
                     return {rb.isNan(m.root().input(0))};
                   }};
  const Rule bad{.name = "bad-build", .pattern = op(Op::Abs), .build = [](const Match& m, Builder& rb) -> Values {
                   return {rb.reshape(m.root().input(0), {.shape = {5}})};
                 }};
  b.output("y", b.neg(b.abs(in())));
  for (const Rule& rule : {wrong, bad}) try {
      (void)rewrite(f, RuleSet{{rule}}, context);
      FAIL() << rule.name;
    } catch (const InternalError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string(rule.name)));
    }
}

TEST_F(RewriteTest, LongChainsAndWideFansTakeLinearTime) {
  const Value x = in();
  Value y = x;
  for (int i = 0; i < 10000; ++i) y = b.neg(y);
  std::vector<Value> fan;
  for (int i = 0; i < 10000; ++i) fan.push_back(b.neg(b.neg(b.exp(x))));
  b.output("y", b.concat(fan, {.axis = 0}));
  b.output("z", y);
  EXPECT_TRUE(*rewrite(f, RuleSet{{kDoubleNeg}}, context));
  EXPECT_EQ(context.statistics["double-neg"], 15000);
}

TEST_F(RewriteTest, PipelineRunsGroupsToAFixedPointAndCallsHooks) {
  int left = 3;
  const Pass count{.name = "count", .run = [&](Function&, PassContext&) -> Result<bool> { return left-- > 0; }};
  const Pass last{.name = "last", .run = [&](Function&, PassContext&) -> Result<bool> { return false; }};
  Pipeline pipeline("p");
  pipeline.addGroup({count}).add(last);
  std::vector<std::string> seen;
  PassHooks hooks;
  hooks.before = [&](const Pass& pass, Function&) -> Status {
    seen.push_back(pass.name);
    return {};
  };
  const auto report = pipeline.run(f, context, hooks);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->changed);
  EXPECT_THAT(seen, testing::ElementsAre("count", "count", "count", "count", "last"));
  ASSERT_EQ(report->passes.size(), 2u);
  EXPECT_EQ(report->passes[0].runs, 4);
  EXPECT_EQ(report->passes[0].changes, 3);
  EXPECT_EQ(pipeline.passes().size(), 2u);
}

TEST_F(RewriteTest, PipelineStopsAtErrorsAndWhereAHookSays) {
  const auto pass = [](std::string name) {
    return Pass{.name = std::move(name), .run = [](Function&, PassContext&) -> Result<bool> { return false; }};
  };
  const Pass fails{.name = "fails",
                   .run = [](Function&, PassContext&) -> Result<bool> { return Error{Code::BadVerify, "broken"}; }};
  Pipeline pipeline("p");
  pipeline.add(pass("a")).add(pass("b")).add(fails);
  const auto failed = pipeline.run(f, context);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().text(), testing::HasSubstr("pass 'fails'"));
  PassHooks hooks;
  hooks.after = [](const Pass& p, Function&, bool) -> Result<bool> { return p.name != "b"; };
  const auto stopped = pipeline.run(f, context, hooks);
  ASSERT_TRUE(stopped.ok());
  EXPECT_TRUE(stopped->stopped);
  EXPECT_EQ(stopped->passes.size(), 2u);
  context.disabled = {"fails"};
  EXPECT_TRUE(pipeline.run(f, context).ok());
}

}  // namespace
}  // namespace aglow
