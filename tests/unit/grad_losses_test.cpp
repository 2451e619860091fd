// Losses by name against their formulas, sample by sample, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "compile/evaluate.h"
#include "grad/losses.h"
#include "graph/verifier.h"

namespace aglow {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kBatch = 3, kClasses = 4;
const Type kType(ElemKind::Float64, Shape{kBatch, kClasses});
const std::vector<double> kScores{0.5, -1, 2, 0, 1, 1, -3, 0.25, 4, 0, 0.125, -2};
const std::vector<double> kWanted{0.25, 0.25, 0.5, 0, 1, 0, 0, 0, 0.1, 0.2, 0.3, 0.4};
const std::vector<int64_t> kLabels{2, 0, 3};
const std::vector<double> kWeights{0.5, 0.25, 0};  // the last sample only fills up the batch

using End = Value(Builder& b, Value scores);
Value plain(Builder&, Value scores) { return scores; }
Value softmax(Builder& b, Value scores) { return b.softmax(scores, {.axis = 1}); }
Value sigmoid(Builder& b, Value scores) { return b.sigmoid(scores); }

struct Model {
  explicit Model(End* end = plain) {
    Builder b(*module.addFunction("main"));
    b.output("y", end(b, b.input("x", kType)));
  }
  Result<AddedLoss> add(const Loss& loss) { return addLoss(*module.findFunction("main"), loss); }

  Module module;
};

double lossOf(const Loss& loss, End* end = plain) {
  Model model(end);
  const auto added = model.add(loss);
  EXPECT_TRUE(added.ok()) << added.error().text();
  EXPECT_TRUE(verify(model.module).ok());
  const Tensor target =
      added->classes > 0 ? Tensor::of(Type(ElemKind::Int64, Shape{kBatch}), kLabels) : Tensor::of(kType, kWanted);
  const NamedTensors bindings{{"x", Tensor::of(kType, kScores)},
                              {added->target, target},
                              {added->weights, Tensor::of(Type(ElemKind::Float32, Shape{kBatch}), kWeights)}};
  const auto outputs = evaluateFunction(*model.module.findFunction("main"), bindings);
  EXPECT_TRUE(outputs.ok()) << outputs.error().text();
  return outputs->back().doubles()[0];
}

// The weighted sum over samples of what a function makes of each.
double expected(
    const std::function<double(std::span<const double> scores, std::span<const double> wanted, int64_t)>& f) {
  double sum = 0;
  for (size_t i = 0; i < kBatch; ++i)
    sum += kWeights[i] * f(std::span(kScores).subspan(i * kClasses, kClasses),
                           std::span(kWanted).subspan(i * kClasses, kClasses), kLabels[i]);
  return sum;
}

double meanOf(std::span<const double> scores, std::span<const double> wanted,
              const std::function<double(double, double)>& f) {
  double sum = 0;
  for (size_t k = 0; k < scores.size(); ++k) sum += f(scores[k], wanted[k]);
  return sum / static_cast<double>(scores.size());
}

double logSum(std::span<const double> scores) {
  double sum = 0;
  for (const double s : scores) sum += std::exp(s);
  return std::log(sum);
}

void expectLoss(const Loss& loss, double wanted, End* end = plain) {
  EXPECT_NEAR(lossOf(loss, end), wanted, 1e-6) << loss.name;
}

TEST(Losses, OfLabels) {
  const double entropy =
      expected([](auto scores, auto, int64_t label) { return logSum(scores) - scores[static_cast<size_t>(label)]; });
  expectLoss({.name = "softmax-cross-entropy"}, entropy);
  expectLoss({.name = "softmax-cross-entropy"}, entropy, softmax);  // before it
  const double smooth = expected([](auto scores, auto, int64_t label) {
    double even = 0;
    for (const double s : scores) even += (logSum(scores) - s) / kClasses;
    return 0.9 * (logSum(scores) - scores[static_cast<size_t>(label)]) + 0.1 * even;
  });
  expectLoss({.name = "softmax-cross-entropy", .settings = {{"smoothing", 0.1}}}, smooth);
}

TEST(Losses, OfProbabilities) {
  const double entropy = expected([](auto scores, auto wanted, int64_t) {
    return meanOf(scores, wanted, [](double s, double p) { return std::log1p(std::exp(s)) - p * s; });
  });
  expectLoss({.name = "sigmoid-cross-entropy"}, entropy);
  expectLoss({.name = "sigmoid-cross-entropy"}, entropy, sigmoid);  // before it
  const double divergence = expected([](auto scores, auto wanted, int64_t) {
    double sum = 0;
    for (size_t k = 0; k < scores.size(); ++k)
      if (wanted[k] > 0) sum += wanted[k] * (std::log(wanted[k]) - scores[k] + logSum(scores));
    return sum;
  });
  expectLoss({.name = "kl-divergence"}, divergence);
  expectLoss({.name = "kl-divergence"}, divergence, softmax);
}

TEST(Losses, OfDifferences) {
  const auto mean = [](const std::function<double(double)>& f) {
    return expected([&](auto scores, auto wanted, int64_t) {
      return meanOf(scores, wanted, [&](double y, double t) { return f(std::fabs(y - t)); });
    });
  };
  expectLoss({.name = "squared-error"}, mean([](double d) { return d * d; }));
  expectLoss({.name = "absolute-error"}, mean([](double d) { return d; }));
  expectLoss({.name = "huber", .settings = {{"delta", 0.5}}},
             mean([](double d) { return d <= 0.5 ? d * d / 2 : 0.5 * (d - 0.25); }));
}

TEST(Losses, NamesAllThatIsNotThere) {
  Model model;
  const auto wrong = model.add({.name = "square-error", .output = "z"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Code::Usage);
  EXPECT_THAT(wrong.error().text(), AllOf(HasSubstr("no loss 'square-error'"), HasSubstr("no output 'z'"),
                                          HasSubstr("did you mean 'squared-error'?")));
  EXPECT_THAT(model.add({.name = "huber", .settings = {{"dalta", 1}}}).error().text(),
              HasSubstr("no setting of 'huber' 'dalta'"));
  EXPECT_THAT(model.add({.name = "kl-divergence", .settings = {{"axis", 2}}}).error().text(),
              HasSubstr("expected the axis of the classes"));
  EXPECT_EQ(model.module.findFunction("main")->saves().size(), 1U);
}

}  // namespace
}  // namespace aglow
