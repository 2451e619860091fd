// A training step: every optimizer against its formulas written as loops, clipping, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "compile/evaluate.h"
#include "grad/differentiate.h"
#include "grad/training.h"
#include "graph/verifier.h"
#include "lower/lower.h"

namespace aglow {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Type kPoints(ElemKind::Float64, Shape{4, 2}), kTargets(ElemKind::Float64, Shape{4, 1});
const std::vector<double> kX{1, 2, -1, 0.5, 3, -2, 0.25, 1}, kT{1, -1, 2, 0.5}, kStart{0.5, -0.25};
constexpr double kRate = 0.125;

// The mean squared error of targets predicted by points times a weight.
struct Model {
  Model() {
    Builder b(*module.addFunction("main"));
    const Value w = b.constant(Tensor::fromDoubles(Type(ElemKind::Float64, Shape{2, 1}), kStart), "w");
    const Value y = b.matMul(b.input("x", kPoints), w);
    b.output("y", y);
    b.output("loss", b.reduced(b.squaredError(y, b.input("target", kTargets)), "mean", {0, 1}, false));
  }

  Result<Function*> train(TrainingStep step) {
    step.loss = "loss";
    step.variables = {"w"};
    return addTrainingStep(*module.findFunction("main"), step);
  }

  Module module;
};

std::vector<double> gradientAt(const std::vector<double>& w) {
  std::vector<double> g(2, 0);
  for (size_t i = 0; i < 4; ++i) {
    const double error = kX[2 * i] * w[0] + kX[2 * i + 1] * w[1] - kT[i];
    for (size_t k = 0; k < 2; ++k) g[k] += 2 * error * kX[2 * i + k] / 4;
  }
  return g;
}

// The weight after some steps of the function.
std::vector<double> trained(Function& train, int steps) {
  const auto done = differentiate(train, lowerRule);
  EXPECT_TRUE(done.ok()) << done.error().text();
  EXPECT_TRUE(verify(train.module()).ok());
  NamedTensors state;
  const NamedTensors bindings{{"x", Tensor::fromDoubles(kPoints, kX)},
                              {"target", Tensor::fromDoubles(kTargets, kT)},
                              {"rate", Tensor::scalar(ElemKind::Float32, kRate)}};
  for (int i = 0; i < steps; ++i) {
    const auto values = evaluateFunction(train, bindings, &state);
    EXPECT_TRUE(values.ok()) << values.error().text();
  }
  return state.at("w").doubles();
}

// One step of one element: the weight, its gradient, two numbers that are remembered, and the number of the step
// from 1.
using Formula1 = std::function<void(double& w, double g, double& m, double& v, int t)>;

std::vector<double> expected(int steps, const Formula1& formula) {
  std::vector<double> w = kStart, m(2, 0), v(2, 0);
  for (int t = 1; t <= steps; ++t) {
    const std::vector<double> g = gradientAt(w);
    for (size_t k = 0; k < 2; ++k) formula(w[k], g[k], m[k], v[k], t);
  }
  return w;
}

void expectTrained(const TrainingStep& step, const Formula1& formula) {
  constexpr int kSteps = 20;
  Model model;
  const Result<Function*> train = model.train(step);
  ASSERT_TRUE(train.ok()) << train.error().text();
  const std::vector<double> w = trained(**train, kSteps), wanted = expected(kSteps, formula);
  for (size_t k = 0; k < 2; ++k) EXPECT_NEAR(w[k], wanted[k], 1e-12) << step.optimizer;
}

// What a channel of a batch has, of which the running statistics keep 3/4 each time.
TEST(TrainingStep, BatchNormsMoveTheirStatistics) {
  const Type images(ElemKind::Float64, Shape{2, 2, 3}), perChannel(ElemKind::Float64, Shape{2});
  const std::vector<double> x{1, 2, 4, -1, 0, 7, 3, 5, 9, 2, 2, 1};
  Module module;
  Builder b(*module.addFunction("main"));
  const auto channels = [&](const std::vector<double>& values, std::string_view name) {
    return b.constant(Tensor::fromDoubles(perChannel, values), name);
  };
  const Value y = b.batchNorm(b.input("x", images), channels({2, 3}, "scale"), channels({1, -1}, "bias"),
                              channels({0, 1}, "mean"), channels({1, 2}, "variance"), {.epsilon = 0.5});
  b.output("y", y);
  b.output("loss", b.reduced(b.mul(y, y), "sum", {0, 1, 2}, false));
  const TrainingStep step{.loss = "loss", .variables = {"scale"}, .batchNormMomentum = 0.75};
  const Result<Function*> train = addTrainingStep(*module.findFunction("main"), step);
  ASSERT_TRUE(train.ok()) << train.error().text();
  const auto done = differentiate(**train, lowerRule);
  ASSERT_TRUE(done.ok()) << done.error().text();
  ASSERT_TRUE(verify(module).ok());
  NamedTensors state;
  const NamedTensors bindings{{"x", Tensor::fromDoubles(images, x)}, {"rate", Tensor::scalar(ElemKind::Float32, 0)}};
  std::vector<double> results, mean{0, 1}, variance{1, 2};
  for (int i = 0; i < 2; ++i) {
    const auto values = evaluateFunction(**train, bindings, &state);
    ASSERT_TRUE(values.ok()) << values.error().text();
    results = values->front().doubles();
  }
  for (size_t c = 0; c < 2; ++c) {
    const std::vector<double> all{x[3 * c], x[3 * c + 1], x[3 * c + 2], x[6 + 3 * c], x[7 + 3 * c], x[8 + 3 * c]};
    double sum = 0, squares = 0;
    for (const double v : all) sum += v / 6;
    for (const double v : all) squares += (v - sum) * (v - sum);
    for (int i = 0; i < 2; ++i) {
      mean[c] = 0.75 * mean[c] + 0.25 * sum;
      variance[c] = 0.75 * variance[c] + 0.25 * squares / 5;
    }
    const double scale = c == 0 ? 2 : 3, bias = c == 0 ? 1 : -1;
    EXPECT_NEAR(results[3 * c], (x[3 * c] - sum) / std::sqrt(squares / 6 + 0.5) * scale + bias, 1e-12);
    EXPECT_NEAR(state.at("mean").doubles()[c], mean[c], 1e-12);
    EXPECT_NEAR(state.at("variance").doubles()[c], variance[c], 1e-12);
  }
}

TEST(TrainingStep, GradientDescent) {
  expectTrained({.optimizer = "sgd"}, [](double& w, double g, double&, double&, int) { w -= kRate * g; });
  expectTrained({.optimizer = "sgd", .settings = {{"decay", 0.1}}},
                [](double& w, double g, double&, double&, int) { w -= kRate * (g + 0.1 * w); });
}

TEST(TrainingStep, Momentum) {
  expectTrained({.optimizer = "momentum", .settings = {{"dampening", 0.25}}},
                [](double& w, double g, double& m, double&, int t) {
                  m = t == 1 ? g : 0.9 * m + 0.75 * g;
                  w -= kRate * m;
                });
  expectTrained({.optimizer = "nesterov", .settings = {{"momentum", 0.5}, {"decay", 0.1}}},
                [](double& w, double g, double& m, double&, int) {
                  g += 0.1 * w;
                  m = 0.5 * m + g;
                  w -= kRate * (g + 0.5 * m);
                });
}

void adamStep(double& w, double g, double& m, double& v, int t, double epsilon) {
  m = 0.9 * m + 0.1 * g;
  v = 0.999 * v + 0.001 * g * g;
  w -= kRate * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + epsilon);
}

TEST(TrainingStep, Adam) {
  expectTrained({.optimizer = "adam", .settings = {{"epsilon", 0.01}}},
                [](double& w, double g, double& m, double& v, int t) { adamStep(w, g, m, v, t, 0.01); });
  expectTrained({.optimizer = "adam", .settings = {{"decay", 0.1}}},
                [](double& w, double g, double& m, double& v, int t) { adamStep(w, g + 0.1 * w, m, v, t, 1e-8); });
  expectTrained({.optimizer = "adamw", .settings = {{"decay", 0.1}}},
                [](double& w, double g, double& m, double& v, int t) {
                  w *= 1 - kRate * 0.1;
                  adamStep(w, g, m, v, t, 1e-8);
                });
}

TEST(TrainingStep, DividedBySizes) {
  expectTrained({.optimizer = "rmsprop"}, [](double& w, double g, double&, double& v, int) {
    v = 0.99 * v + 0.01 * g * g;
    w -= kRate * g / (std::sqrt(v) + 1e-8);
  });
  expectTrained({.optimizer = "adagrad"}, [](double& w, double g, double&, double& v, int) {
    v += g * g;
    w -= kRate * g / (std::sqrt(v) + 1e-10);
  });
}

TEST(TrainingStep, ClipsValues) {
  expectTrained({.clipValue = 0.5},
                [](double& w, double g, double&, double&, int) { w -= kRate * std::min(std::max(g, -0.5), 0.5); });
}

TEST(TrainingStep, ClipsTheNormOfAllGradients) {
  Model model;
  const Result<Function*> train = model.train({.clipNorm = 0.25});
  ASSERT_TRUE(train.ok());
  const std::vector<double> w = trained(**train, 1), g = gradientAt(kStart);
  const double norm = std::hypot(g[0], g[1]);
  ASSERT_GT(norm, 0.25);
  for (size_t k = 0; k < 2; ++k) EXPECT_NEAR(w[k], kStart[k] - kRate * g[k] * 0.25 / (norm + 1e-6), 1e-12);
}

TEST(TrainingStep, SharesItsVariablesWithTheForwardFunction) {
  Model model;
  ASSERT_TRUE(model.train({}).ok());
  const Function& forward = *model.module.findFunction("main");
  ASSERT_EQ(statesOf(forward).size(), 1U);
  EXPECT_EQ(statesOf(forward).front(), statesOf(*model.module.findFunction("train")).front());
  EXPECT_EQ(statesOf(forward).front()->initial().doubles(), kStart);
  EXPECT_TRUE(model.module.constants().empty());
}

TEST(TrainingStep, TakesWhatTheForwardFunctionTakesAndTheRate) {
  Model model;
  const Result<Function*> train = model.train({.optimizer = "adam"});
  std::vector<std::string> inputs, outputs, states;
  for (const Placeholder* p : inputsOf(**train)) inputs.push_back(p->name());
  for (const Placeholder* p : outputsOf(**train)) outputs.push_back(p->name());
  for (const Placeholder* p : statesOf(**train)) states.push_back(p->name());
  EXPECT_THAT(inputs, ElementsAre("x", "target", "rate"));
  EXPECT_THAT(outputs, ElementsAre("y", "loss"));
  EXPECT_THAT(states, ElementsAre("w", "train.steps", "w.mean", "w.square"));
}

TEST(TrainingStep, NamesAllThatIsNotThere) {
  Model model;
  const Result<Function*> train = addTrainingStep(
      *model.module.findFunction("main"),
      {.name = "main", .loss = "los", .variables = {"v", "x"}, .optimizer = "sgd", .settings = {{"decey", 1}}});
  ASSERT_FALSE(train.ok());
  EXPECT_EQ(train.error().code, Code::Usage);
  EXPECT_THAT(train.error().message,
              AllOf(HasSubstr("no variable 'v'"), HasSubstr("'x' is not a variable"), HasSubstr("no output 'los'"),
                    HasSubstr("no setting of 'sgd' 'decey'"), HasSubstr("a function 'main' already")));
  EXPECT_EQ(train.error().hint, "did you mean 'decay'?");
  const Result<Function*> other = model.train({.optimizer = "adm"});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().text(), AllOf(HasSubstr("no optimizer 'adm'"), HasSubstr("did you mean 'adam'?")));
  EXPECT_EQ(model.module.functions().size(), 1U);
  EXPECT_EQ(model.module.constants().size(), 1U);
}

}  // namespace
}  // namespace aglow
