// Spellings of whole operators as exporters write them, through the whole optimizer: what is left, and that it computes
// the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate.h"
#include "optimize/optimize.h"

namespace aglow {
namespace {

using namespace testing_support;  // NOLINT
using testing::ElementsAre;

struct RecognizeTest : testing::Test {
  Value in(Shape shape = {2, 3, 4}) { return b.input("x", Type(ElemKind::Float32, std::move(shape))); }
  Value weights(Shape shape, double low = -1) { return b.constant(randomConstant(std::move(shape), low), "w"); }
  Tensor randomConstant(Shape shape, double low) {
    std::vector<double> values(static_cast<size_t>(shape.elements()));
    for (double& v : values) v = rng.real(low, 1);
    return Tensor::fromDoubles(Type(ElemKind::Float32, std::move(shape)), values);
  }
  Value c(double value) { return b.scalar(ElemKind::Float32, value); }

  // The operators that are left of y.
  std::vector<std::string> optimized(Value y) {
    b.output("y", y);
    Function& before = *module.clone(f, "before");
    const auto report = optimizePipeline().run(f, context);
    EXPECT_TRUE(report.ok());
    const NamedTensors bindings = randomBindings(rng, before);
    EXPECT_TRUE(sameResults(before, f, bindings));
    return opsOf(f);
  }

  Module module;
  Function& f = *module.addFunction("f");
  Builder b{f};
  Rng rng{7};
  ReferenceEvaluator evaluator;
  PassContext context{evaluator};
};

TEST_F(RecognizeTest, GeluOfTorch) {
  const Value x = in();
  const Value gate = b.add(b.erf(b.div(x, c(1.4142135381698608))), c(1));
  EXPECT_THAT(optimized(b.mul(b.mul(x, gate), c(0.5))), ElementsAre("Gelu"));
}

TEST_F(RecognizeTest, GeluOfKeras) {
  const Value x = in();
  EXPECT_THAT(optimized(b.mul(b.mul(c(0.5), x), b.add(c(1), b.erf(b.mul(x, c(0.70710678)))))), ElementsAre("Gelu"));
}

TEST_F(RecognizeTest, GeluOnAProductWithBias) {
  const Value x = b.add(b.matMul(in(), weights({4, 4})), weights({4}));
  const Value gate = b.add(b.erf(b.div(x, c(1.4142135381698608))), c(1));
  EXPECT_THAT(optimized(b.mul(b.mul(x, gate), c(0.5))), ElementsAre("MatMul", "Add", "Gelu"));
}

TEST_F(RecognizeTest, GeluTanhOfTransformers) {
  const Value x = in();
  const Value u = b.mul(c(0.7978845608028654), b.add(x, b.mul(c(0.044714998453855515), b.pow(x, c(3)))));
  EXPECT_THAT(optimized(b.mul(b.mul(c(0.5), x), b.add(c(1), b.tanh(u)))), ElementsAre("GeluTanh"));
}

TEST_F(RecognizeTest, GeluTanhOfTensorflow) {
  const Value x = in();
  const Value u = b.mul(b.mul(x, c(0.7978845834732056)), b.add(c(1), b.mul(b.mul(c(0.044714998453855515), x), x)));
  EXPECT_THAT(optimized(b.mul(x, b.mul(c(0.5), b.add(c(1), b.tanh(u))))), ElementsAre("GeluTanh"));
}

TEST_F(RecognizeTest, OtherNumbersAreNoGelu) {
  const Value x = in();
  const Value gate = b.add(b.erf(b.div(x, c(1.5))), c(1));
  EXPECT_THAT(optimized(b.mul(b.mul(x, gate), c(0.5))), testing::Not(testing::Contains("Gelu")));
}

TEST_F(RecognizeTest, SwishAndMishAndTheirPieces) {
  const Value x = in();
  const Value sigmoid = b.div(c(1), b.add(b.exp(b.mul(x, c(-1))), c(1)));
  const Value softplus = b.log(b.add(c(1), b.exp(x)));
  const Value mish = b.mul(b.tanh(softplus), x);
  EXPECT_THAT(optimized(b.sub(b.mul(x, sigmoid), mish)), testing::UnorderedElementsAre("Swish", "Mish", "Sub"));
}

TEST_F(RecognizeTest, HardSwishOfOldOpsets) {
  const Value x = in();
  const Value relu6 = b.min(b.max(b.add(x, c(3)), c(0)), c(6));
  EXPECT_THAT(optimized(b.div(b.mul(x, relu6), c(6))), ElementsAre("HardSwish"));
}

TEST_F(RecognizeTest, HardSwishOfMobilenet) {
  const Value x = in();
  const Value gate = b.mul(b.clip(b.add(x, c(3)), c(0), c(6)), c(0.16666667));
  EXPECT_THAT(optimized(b.mul(x, gate)), ElementsAre("HardSwish"));
}

TEST_F(RecognizeTest, SoftmaxWithAndWithoutMaximum) {
  const Value x = in();
  const Value e = b.exp(b.sub(x, b.reduced(x, "max", {2}))), plain = b.exp(x);
  const Value y = b.div(e, b.reduced(e, "sum", {2})), z = b.div(plain, b.reduced(plain, "sum", {1}));
  EXPECT_THAT(optimized(b.sub(b.log(y), z)), testing::UnorderedElementsAre("LogSoftmax", "Softmax", "Sub"));
}

TEST_F(RecognizeTest, LayerNormOfTorch) {
  const Value x = in();
  const Value d = b.sub(x, b.reduced(x, "mean", {2}));
  const Value variance = b.reduced(b.pow(d, c(2)), "mean", {2});
  const Value y = b.div(d, b.sqrt(b.add(variance, c(1e-5))));
  EXPECT_THAT(optimized(b.add(b.mul(y, weights({4})), weights({4}))), ElementsAre("LayerNorm"));
  EXPECT_NEAR(f.front()->attrs().real("epsilon"), 1e-5, 1e-9);
  EXPECT_EQ(f.front()->inputCount(), 3);
}

TEST_F(RecognizeTest, LayerNormOfTensorflow) {
  const Value x = in();
  const Value mean = b.reduced(x, "mean", {2});
  const Value d = b.sub(x, mean), variance = b.reduced(b.mul(d, d), "mean", {2});
  const Value r = b.mul(b.reciprocal(b.sqrt(b.add(variance, c(1e-3)))), weights({4}));
  EXPECT_THAT(optimized(b.add(b.mul(x, r), b.sub(weights({4}), b.mul(mean, r)))), ElementsAre("LayerNorm"));
}

TEST_F(RecognizeTest, LayerNormWithTwoCopiesOfTheDifference) {
  const Value x = in();
  const auto difference = [&] { return b.sub(x, b.reduced(x, "mean", {1, 2})); };
  const Value square = difference();
  const Value y = b.div(difference(), b.sqrt(b.add(b.reduced(b.mul(square, square), "mean", {1, 2}), c(1e-5))));
  EXPECT_THAT(optimized(y), ElementsAre("LayerNorm"));
}

TEST_F(RecognizeTest, OtherAxesAreNoLayerNorm) {
  const Value x = in();
  const Value d = b.sub(x, b.reduced(x, "mean", {1}));
  const Value y = b.div(d, b.sqrt(b.add(b.reduced(b.mul(d, d), "mean", {1}), c(1e-5))));
  EXPECT_THAT(optimized(y), testing::Not(testing::Contains("LayerNorm")));
}

TEST_F(RecognizeTest, RmsNormOfLlama) {
  const Value x = in();
  const Value mean = b.reduced(b.pow(x, c(2)), "mean", {2});
  const Value r = b.div(c(1), b.sqrt(b.add(mean, c(1e-6))));
  EXPECT_THAT(optimized(b.mul(weights({4}), b.mul(x, r))), ElementsAre("RMSNorm"));
}

TEST_F(RecognizeTest, GroupNormOfTorch) {
  const Value x = in({2, 4, 3, 3});
  const Value seen = b.reshape(x, {.shape = {2, 2, 18}});
  const Value ones = b.constant(Tensor::of<float>(Type(ElemKind::Float32, {2}), {1, 1}));
  const Value zeros = b.constant(Tensor::of<float>(Type(ElemKind::Float32, {2}), {0, 0}));
  const Value y = b.reshape(b.instanceNorm(seen, ones, zeros), {.shape = {2, 4, 3, 3}});
  EXPECT_THAT(optimized(b.add(b.mul(y, weights({4, 1, 1})), weights({4, 1, 1}))), ElementsAre("GroupNorm"));
}

TEST_F(RecognizeTest, BatchNormVanishesInAConvolution) {
  const Value x = in({1, 3, 5, 5});
  const Value y = b.conv(x, weights({4, 3, 3, 3}), {}, {.pads = {1, 1, 1, 1}});
  const Value z = b.batchNorm(y, weights({4}), weights({4}), weights({4}), weights({4}, 0.1));
  EXPECT_THAT(optimized(b.relu(z)), ElementsAre("Conv", "Relu"));
}

TEST_F(RecognizeTest, ScaledChainsVanishInWeights) {
  const Value x = in({2, 4});
  const Value y = b.add(b.matMul(b.div(x, c(255)), weights({4, 4})), weights({4}));
  EXPECT_THAT(optimized(b.mul(b.mul(y, c(0.125)), weights({4}))), ElementsAre("MatMul", "Add"));
}

TEST_F(RecognizeTest, SharedLargeWeightsAreNotCopied) {
  const Value x = in({2, 200}), w = weights({200, 200});
  const Value y = b.mul(b.matMul(x, w), c(2));
  EXPECT_THAT(optimized(b.add(y, b.matMul(b.exp(x), w))), testing::Contains("Mul"));
}

TEST_F(RecognizeTest, AttentionOfBert) {
  const auto project = [&](Value x, std::vector<int64_t> perm) {
    const Value y = b.add(b.matMul(x, weights({8, 8})), weights({8}));
    return b.transpose(b.reshape(y, {.shape = {2, 3, 2, 4}}), {.perm = std::move(perm)});
  };
  const Value x = in({2, 3, 8}), mask = in({2, 1, 1, 3});
  const Value q = project(x, {0, 2, 1, 3}), k = project(x, {0, 2, 3, 1}), v = project(x, {0, 2, 1, 3});
  const Value scores = b.add(b.div(b.matMul(q, k), c(2)), mask);
  const Value y = b.matMul(b.softmax(scores, {.axis = -1}), v);
  const Value out = b.reshape(b.transpose(y, {.perm = {0, 2, 1, 3}}), {.shape = {2, 3, 8}});
  EXPECT_THAT(optimized(out),
              testing::AllOf(testing::Contains("Attention"), testing::Not(testing::Contains("Softmax"))));
  for (const auto& node : f.nodes())
    if (node->op() == Op::Attention) EXPECT_DOUBLE_EQ(node->attrs().real("scale"), 0.5);
  EXPECT_EQ(countOf(f, Op::Transpose), 4);
}

TEST_F(RecognizeTest, CausalAttentionOfGpt) {
  const Value q = in({1, 2, 3, 4}), k = in({1, 2, 3, 4}), v = in({1, 2, 3, 4});
  const Value scores = b.mul(b.matMul(q, b.transpose(k, {.perm = {0, 1, 3, 2}})), c(0.5));
  const Value causal = b.constant(Tensor::of<int>(Type(ElemKind::Bool, {1, 1, 3, 3}), {1, 0, 0, 1, 1, 0, 1, 1, 1}));
  const Value hidden = b.where(causal, scores, c(-3.4028234663852886e38));
  EXPECT_THAT(optimized(b.matMul(b.softmax(hidden, {.axis = 3}), v)), ElementsAre("Attention"));
}

TEST_F(RecognizeTest, MeanOverSpaceStaysAReduction) {
  const Value x = in({1, 3, 4, 4});
  const Value y = b.div(b.reduced(b.reduced(x, "sum", {3}), "sum", {2}), c(16));
  EXPECT_THAT(optimized(b.reshape(y, {.shape = {1, 3}})), ElementsAre("Reduce"));
  EXPECT_EQ(f.front()->attrs().word("kind"), "mean");
}

TEST_F(RecognizeTest, SplitAndConcatCancel) {
  const Value x = in({2, 6});
  const auto part = [&](int64_t at) { return b.slice(x, {.starts = {0, at}, .sizes = {2, 2}}); };
  EXPECT_THAT(optimized(b.relu(b.concat({part(0), part(2), part(4)}, {.axis = 1}))), ElementsAre("Relu"));
}

}  // namespace
}  // namespace aglow
