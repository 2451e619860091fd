// Every rule of the optimizer on random instances: both sides compute the same, and a second application finds nothing.
#include <gtest/gtest.h>

#include "evaluate.h"
#include "graph/verifier.h"
#include "ops/all_ops.h"
#include "optimize/rules.h"

namespace aglow {

void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }  // NOLINT: named by GoogleTest

namespace {

using namespace testing_support;  // NOLINT

std::vector<Rule> everyRule() {
  std::vector<Rule> all;
  for (const RuleTheme& theme : ruleThemes()) all.insert(all.end(), theme.rules.begin(), theme.rules.end());
  return all;
}

struct RuleTest : testing::TestWithParam<Rule> {};

// What a node says of its results is what its record infers.
void expectWellTyped(const Function& function) {
  for (const auto& node : function.nodes()) {
    if (node->op() == Op::Save) continue;
    std::vector<const Type*> in;
    for (const Value v : node->inputs()) in.push_back(v ? &v.type() : nullptr);
    const auto types = inferTypes(node->attrs(), in);
    ASSERT_TRUE(types.ok()) << types.error().text();
    EXPECT_EQ(*types, node->types()) << node->name();
  }
}

TEST_P(RuleTest, KeepsTheMeaning) {
  const Rule& rule = GetParam();
  ASSERT_NE(rule.sample, nullptr);
  const RuleSet rules{{rule}};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed * 7919 + 1);
    Module module;
    Function& before = *module.addFunction("before");
    Builder b(before);
    b.output("y", rule.sample(rng, b));
    Function& after = *module.clone(before, "after");
    ReferenceEvaluator evaluator;
    PassContext context{evaluator};
    ASSERT_TRUE(rewrite(after, rules, context).ok());
    ASSERT_GE(context.statistics[std::string(rule.name)], 1) << "the rule does not apply to its sample";
    expectWellTyped(after);
    const bool bits = rule.keeps == Keeps::Bits;
    ASSERT_TRUE(sameResults(before, after, randomBindings(rng, before), bits));
    if (rule.keeps != Keeps::Finite)
      ASSERT_TRUE(sameResults(before, after, randomBindings(rng, before, true), bits)) << "special values";
    EXPECT_FALSE(*rewrite(after, rules, context)) << "the rule applies to its own result";
  }
}

// Under a predicate of the whole sample, a rule may apply or not, but what it builds has the predicate as well.
TEST_P(RuleTest, KeepsPredicates) {
  const Rule& rule = GetParam();
  const RuleSet rules{{rule}};
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed * 104729 + 1);
    Module module;
    Function& before = *module.addFunction("before");
    Builder b(before);
    const Value y = rule.sample(rng, b);
    const Value predicate = b.input("p", Type(ElemKind::Bool, {}));
    for (const auto& node : before.nodes()) node->setPredicate(predicate);
    b.output("y", y);
    Function& after = *module.clone(before, "after");
    ReferenceEvaluator evaluator;
    PassContext context{evaluator};
    ASSERT_TRUE(rewrite(after, rules, context).ok());
    for (const auto& node : after.nodes())
      if (node->op() != Op::Save) EXPECT_EQ(node->predicate(), predicate) << node->name();
    const Status valid = verify(module);
    ASSERT_TRUE(valid.ok()) << valid.error().text();
    ASSERT_TRUE(sameResults(before, after, randomBindings(rng, before)));
  }
}

INSTANTIATE_TEST_SUITE_P(Optimize, RuleTest, testing::ValuesIn(everyRule()), [](const auto& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Rules, HaveNamesAndDocs) {
  std::set<std::string_view> names;
  for (const Rule& rule : everyRule()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name << " stands twice";
    EXPECT_FALSE(rule.doc.empty()) << rule.name;
    EXPECT_EQ(rule.doc.back(), '.') << rule.name;
    const bool relaxed = rule.doc.find("Relaxed: ") != std::string_view::npos;
    EXPECT_EQ(relaxed, rule.keeps == Keeps::Finite) << rule.name << " must say what it relaxes";
  }
}

}  // namespace
}  // namespace aglow
