#include "graph/equality.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/builder.h"
#include "graph/text.h"
#include "random_graph.h"

namespace aglow {
namespace {

std::unique_ptr<Module> parsed(const std::string& body) {
  auto module = parseModule("module {\nplaceholder @x : f32[4]\nplaceholder @z : f32[4]\n" + body + "\n}");
  EXPECT_TRUE(module.ok()) << module.error().text();
  return *std::move(module);
}

constexpr const char* kBase =
    "constant @c : f32[4] = [1, 2, 3, 4] func @f { %a = Add(@x, @c) %y = Elu(%a) {alpha = 2} }";

TEST(GraphEquality, TellsWhatDiffers) {
  const auto base = parsed(kBase);
  EXPECT_EQ(difference(*base, *parsed(kBase)), "");
  const std::pair<const char*, const char*> table[] = {
      {"constant @c : f32[4] = [1, 2, 3, 5] func @f { %a = Add(@x, @c) %y = Elu(%a) {alpha = 2} }",
       "bytes differ: constant @c : f32[4] = [1, 2, 3, 4] against constant @c : f32[4] = [1, 2, 3, 5]"},
      {"constant @c : f32[4] = [1, 2, 3, 4] func @f { %a = Add(@c, @x) %y = Elu(%a) {alpha = 2} }",
       "function 'f': storage differ: placeholder @x : f32[4] against constant @c : f32[4] = [1, 2, 3, 4]"},
      {"constant @c : f32[4] = [1, 2, 3, 4] func @f { %a = Sub(@x, @c) %y = Elu(%a) {alpha = 2} }",
       "function 'f': nodes differ: %a = Add(@x, @c) : f32[4] against %a = Sub(@x, @c) : f32[4]"},
      {"constant @c : f32[4] = [1, 2, 3, 4] func @f { %a = Add(@x, @c) %y = Elu(%a) }",
       "function 'f': nodes differ: %y = Elu(%a) {alpha = 2} : f32[4] against %y = Elu(%a) : f32[4]"},
      {"constant @c : f32[4] = [1, 2, 3, 4] func @f { %a = Add(@x, @c) %y = Elu(@x) {alpha = 2} }",
       "function 'f': operands differ: %y = Elu(%a) {alpha = 2} : f32[4] against %y = Elu(@x) {alpha = 2} : f32[4]"},
      {"constant @c : f32[4] = [1, 2, 3, 4] func @f { %a = Add(@x, @c) }", "function 'f': 2 nodes against 1"},
      {"constant @c : f32[4] = [1, 2, 3, 4]", "1 functions against 0"},
      {"func @f { }", "3 constants and placeholders against 2"},
      {"constant @c : f32[4] = [1, 2, 3, 4] func @g { %a = Add(@x, @c) %y = Elu(%a) {alpha = 2} }",
       "function 'f' against 'g'"},
  };
  for (const auto& [text, message] : table) {
    const auto other = parsed(text);
    EXPECT_EQ(difference(*base, *other), message);
    EXPECT_FALSE(equal(*other, *base)) << text;
    EXPECT_NE(structuralHash(*base), structuralHash(*other)) << text;
  }
}

TEST(GraphEquality, NamesMayBeIgnored) {
  const auto base = parsed(kBase);
  const auto other =
      parsed("constant @d : f32[4] = [1, 2, 3, 4] func @g { %b = Add(@x, @d) %z = Elu(%b) {alpha = 2} }");
  EXPECT_FALSE(equal(*base, *other));
  EXPECT_TRUE(equal(*base, *other, Names::Ignore));
  EXPECT_NE(structuralHash(*base), structuralHash(*other));
  EXPECT_EQ(structuralHash(*base, Names::Ignore), structuralHash(*other, Names::Ignore));
}

TEST(GraphEquality, StorageCorrespondsOneToOne) {
  const auto same = parsed("func @f { %a = Add(@x, @x) }");
  const auto both = parsed("func @f { %a = Add(@x, @z) }");
  EXPECT_FALSE(equal(*same->functions()[0], *both->functions()[0], Names::Ignore));
  EXPECT_FALSE(equal(*both->functions()[0], *same->functions()[0], Names::Ignore));
  EXPECT_NE(structuralHash(*same->functions()[0], Names::Ignore), structuralHash(*both->functions()[0], Names::Ignore));
  const auto swapped = parsed("func @f { %a = Add(@z, @x) }");
  EXPECT_TRUE(equal(*both->functions()[0], *swapped->functions()[0], Names::Ignore));
  EXPECT_FALSE(equal(*both, *swapped, Names::Ignore)) << "a module's storage has an order";
}

TEST(GraphEquality, FloatsAreComparedByTheirBits) {
  const auto zero = parsed("func @f { %a = Splat() {shape = [1]} }");
  const auto negative = parsed("func @f { %a = Splat() {value = -0, shape = [1]} }");
  const auto nan = parsed("func @f { %a = Splat() {value = nan, shape = [1]} }");
  EXPECT_FALSE(equal(*zero, *negative));
  EXPECT_TRUE(equal(*nan, *parsed("func @f { %a = Splat() {value = nan, shape = [1]} }")));
}

TEST(GraphEquality, HashesAreTheSameOnEveryMachine) { EXPECT_EQ(structuralHash(*parsed(kBase)), 1430944949389801953u); }

TEST(GraphEquality, PredicatesCount) {
  const auto with = parsed("placeholder @p : bool[] func @f { %a = Relu(@x) if @p }");
  const auto without = parsed("placeholder @p : bool[] func @f { %a = Relu(@x) }");
  EXPECT_FALSE(equal(*with, *without));
  EXPECT_NE(structuralHash(*with), structuralHash(*without));
}

TEST(GraphEquality, RandomGraphsHaveHashesOfTheirOwn) {
  std::set<uint64_t> hashes;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Module module;
    const Function* f = RandomGraph(module, seed).addFunction("main", 5);
    hashes.insert(structuralHash(*f, Names::Ignore));
  }
  EXPECT_EQ(hashes.size(), 50u);
}

}  // namespace
}  // namespace aglow
