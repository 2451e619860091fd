// Differentiation: which nodes gradients pass, what they become where functions have corners or leave the range of
// numbers, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "evaluate.h"
#include "grad/differentiate.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "lower/lower.h"

namespace aglow {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_support::countOf;
using testing_support::opsOf;

const Type kThree(ElemKind::Float32, Shape{3});

class Differentiate : public ::testing::Test {
protected:
  std::vector<double> gradient(Value y, Value x, const std::vector<double>& at) {
    b.output("dx", b.gradient(y, x));
    const auto done = differentiate(b.function(), lowerRule);
    EXPECT_TRUE(done.ok()) << done.error().text();
    EXPECT_TRUE(verify(module).ok());
    NamedTensors bindings;
    for (const Placeholder* place : inputsOf(b.function()))
      bindings.emplace(place->name(), Tensor::fromDoubles(place->type(), at));
    const auto values = evaluateFunction(b.function(), bindings);
    EXPECT_TRUE(values.ok()) << values.error().text();
    return values->back().doubles();
  }

  Module module;
  Builder b{*module.addFunction("main")};
};

TEST_F(Differentiate, AddsUpAllWaysToAValue) {
  const Value x = b.input("x", kThree);
  const Value square = b.mul(x, x);
  EXPECT_THAT(gradient(b.add(square, b.mul(square, x)), x, {1, 2, -1}), ElementsAre(5, 16, 1));
}

TEST_F(Differentiate, IsOneByTheValueItself) {
  const Value x = b.input("x", kThree);
  EXPECT_THAT(gradient(x, x, {1, 2, 3}), ElementsAre(1, 1, 1));
}

TEST_F(Differentiate, IsZeroByWhatDoesNotCount) {
  const Value x = b.input("x", kThree), y = b.input("y", kThree);
  EXPECT_THAT(gradient(b.exp(y), x, {1, 2, 3}), ElementsAre(0, 0, 0));
}

TEST_F(Differentiate, StopsAtSteps) {
  const Value x = b.input("x", kThree);
  const Value steps = b.cast(b.cast(x, {.to = ElemKind::Int32}), {.to = ElemKind::Float32});
  EXPECT_THAT(gradient(b.add(b.mul(b.floor(x), x), steps), x, {1.5, 2.5, -0.5}), ElementsAre(1, 2, -1));
}

TEST_F(Differentiate, TakesValuesInBetween) {
  const Value x = b.input("x", kThree);
  const Value middle = b.mul(x, x);
  const Value y = b.mul(middle, middle);
  b.output("dmiddle", b.gradient(y, middle));
  EXPECT_THAT(gradient(y, x, {1, 2, -1}), ElementsAre(4, 32, -4));
  EXPECT_EQ(countOf(b.function(), Op::Gradient), 0);
}

TEST_F(Differentiate, TakesConstantsAsVariables) {
  const Value x = b.input("x", kThree);
  const Value two = b.constant(Tensor::of(kThree, std::vector<float>{2, 2, 2}));
  EXPECT_THAT(gradient(b.mul(b.mul(x, two), two), two, {1, 2, 3}), ElementsAre(4, 8, 12));
}

TEST_F(Differentiate, IgnoresPredicatesOnTheWay) {
  const Value x = b.input("x", kThree);
  const Value when = b.less(b.reduced(x, "sum", {0}, false), b.scalarLike(x, 0));
  const Value y = b.when(when).mul(x, x);
  b.when({});
  EXPECT_THAT(gradient(y, x, {1, 2, 3}), ElementsAre(2, 4, 6));
  EXPECT_FALSE(y.node->predicate());
}

TEST_F(Differentiate, LowersCompositesThatHaveNoRule) {
  const Value x = b.input("x", Type(ElemKind::Float32, Shape{1, 3}));
  const Value scale = b.constant(Tensor::of(kThree, std::vector<float>{1, 1, 1}));
  gradient(b.rmsNorm(b.softmax(x), scale), x, {1, 2, 3});
  EXPECT_EQ(countOf(b.function(), Op::RMSNorm), 0);
  EXPECT_EQ(countOf(b.function(), Op::Softmax), 1);
}

TEST_F(Differentiate, LeavesAloneWhatIsNotOnTheWay) {
  const Value x = b.input("x", Type(ElemKind::Float32, Shape{1, 3}));
  const Value scale = b.constant(Tensor::of(kThree, std::vector<float>{1, 1, 1}));
  b.output("norm", b.rmsNorm(x, scale));
  gradient(b.exp(x), x, {1, 2, 3});
  EXPECT_EQ(countOf(b.function(), Op::RMSNorm), 1);
}

TEST_F(Differentiate, NamesAllThatHasNoGradient) {
  const Value x = b.input("x", kThree);
  const Value bits = b.named("first").bitcast(x, {.to = ElemKind::Int32});
  const Value back = b.named("second").bitcast(bits, {.to = ElemKind::Float32});
  const Value quantized = b.named("third").quantize(back, {.scales = {0.5}, .offsets = {0}});
  b.output("dx", b.gradient(b.named("last").dequantize(quantized), x));
  const auto done = differentiate(b.function(), lowerRule);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Code::UnsupportedFeature);
  for (const char* part : {"'first' (Bitcast)", "'second' (Bitcast)", "'third' (Quantize)", "'last' (Dequantize)"})
    EXPECT_THAT(done.error().message, HasSubstr(part));
}

TEST_F(Differentiate, GivesUpdatesThatMultiplyTheirGradient) {
  const Value updates = b.input("updates", kThree);
  const Value data = b.constant(Tensor::of(kThree, std::vector<float>{5, 6, 7}));
  const Value y = b.scatter(data, b.ints({0, 0, 1}), updates, {.reduction = "mul"});
  EXPECT_THAT(gradient(y, updates, {0, 2, 3}), ElementsAre(10, 0, 6));
}

TEST_F(Differentiate, WritesReluAsAChoice) {
  const Value x = b.input("x", kThree);
  EXPECT_THAT(gradient(b.relu(x), x, {-1, 0, 2}), ElementsAre(0, 0, 1));
  EXPECT_THAT(opsOf(b.function()), ElementsAre("Relu", "Splat", "Less", "Where"));
}

TEST_F(Differentiate, IsExactWherePiecesMeetSmoothly) {
  const Value x = b.input("x", kThree);
  EXPECT_THAT(gradient(b.softplus(x), x, {0, -30, 100}), ElementsAre(0.5, DoubleNear(9.357623e-14, 1e-19), 1));
}

TEST_F(Differentiate, IsFiniteWherePowersAreNot) {
  const Value x = b.input("x", kThree);
  EXPECT_THAT(gradient(b.sigmoid(x), x, {-1000, 0, 1000}), ElementsAre(0, 0.25, 0));
}

TEST_F(Differentiate, IsFiniteForSwishOfLargeNumbers) {
  const Value x = b.input("x", kThree);
  EXPECT_THAT(gradient(b.swish(x), x, {-1000, 0, 1000}), ElementsAre(0, 0.5, 1));
}

TEST_F(Differentiate, IsZeroWhereNormsAreZero) {
  const Value x = b.input("x", kThree);
  const Value norm = b.sqrt(b.reduced(b.mul(x, x), "sum", {0}));
  EXPECT_THAT(gradient(norm, x, {0, 0, 0}), ElementsAre(0, 0, 0));
}

TEST_F(Differentiate, LeavesOtherNormsAsTheyAre) {
  const Value x = b.input("x", kThree);
  const Value norm = b.sqrt(b.reduced(b.mul(x, x), "sum", {0}));
  EXPECT_THAT(gradient(norm, x, {0, 3, -4}), ElementsAre(0, DoubleNear(0.6, 1e-6), DoubleNear(-0.8, 1e-6)));
}

// Of a gradient as well: nothing divides zero by zero.
TEST_F(Differentiate, IsZeroTwiceWhereNormsAreZero) {
  const Value x = b.input("x", kThree);
  const Value norm = b.sqrt(b.reduced(b.mul(x, x), "sum", {0}));
  EXPECT_THAT(gradient(b.gradient(norm, x), x, {0, 0, 0}), ElementsAre(0, 0, 0));
}

TEST_F(Differentiate, SharesBetweenEquals) {
  const Value x = b.input("x", kThree);
  EXPECT_THAT(gradient(b.reduced(x, "max", {0}), x, {2, 2, 1}), ElementsAre(0.5, 0.5, 0));
}

TEST_F(Differentiate, AddsUpRepeatedIndices) {
  const Value x = b.input("x", kThree);
  EXPECT_THAT(gradient(b.gather(x, b.ints({2, 0, 2, -1})), x, {1, 2, 3}), ElementsAre(1, 0, 3));
}

TEST_F(Differentiate, GivesZeroFactorsTheirGradient) {
  const Value x = b.input("x", kThree);
  EXPECT_THAT(gradient(b.reduced(x, "prod", {0}), x, {0, 2, 3}), ElementsAre(6, 0, 0));
}

TEST_F(Differentiate, RegressionHasTheGradientOfHalfTheSquaredError) {
  const Value x = b.input("x", kThree);
  const Value expected = b.constant(Tensor::of(kThree, std::vector<float>{1, 1, 1}));
  EXPECT_THAT(gradient(b.regression(x, expected), x, {1, 2, -1}), ElementsAre(0, 1, -2));
}

}  // namespace
}  // namespace aglow
