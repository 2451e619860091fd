// Training as a whole: steps against formulas, accumulation and last batches, checkpoints, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "graph/text.h"
#include "support/temporary.h"
#include "train/trainer.h"
#include "train/variables.h"

namespace aglow {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder that goes with the test.
class TrainerTest : public ::testing::Test {
protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  // y = x * w + b for batches of a size.
  TrainingSource linear(int64_t batch) const {
    Module module;
    Builder b(*module.addFunction("main"));
    const Value w = b.constant(Tensor::of(Type(ElemKind::Float32, Shape{2, 1}), std::vector<double>{0.5, -0.25}), "w");
    const Value bias = b.constant(Tensor::of(Type(ElemKind::Float32, Shape{1}), std::vector<double>{0.125}), "b");
    b.output("y", b.add(b.matMul(b.input("x", Type(ElemKind::Float32, Shape{batch, 2})), w), bias));
    const std::string file = path("linear.graph");
    EXPECT_TRUE(writeModule(file, module).ok());
    return {.path = file, .model = {}, .file = {}};
  }

  TemporaryFolder folder_ = *TemporaryFolder::create();
};

constexpr int64_t kSamples = 10;

Dataset points() {
  std::vector<double> x, t;
  for (int64_t i = 0; i < kSamples; ++i) {
    const double a = std::sin(static_cast<double>(i)), b = std::cos(2.0 * static_cast<double>(i));
    x.insert(x.end(), {a, b});
    t.push_back(2 * a - b + 0.5);
  }
  return {.inputs = {{"x", Tensor::of(Type(ElemKind::Float32, Shape{kSamples, 2}), x)}},
          .target = Tensor::of(Type(ElemKind::Float32, Shape{kSamples, 1}), t)};
}

std::unique_ptr<Trainer> open(TrainingSource source, TrainingPlan plan, uint64_t seed = 0) {
  CompileOptions compile;
  compile.backend = std::string(kReferenceBackend);
  auto trainer = Trainer::open(std::move(source), std::move(plan), compile, {}, seed);
  EXPECT_TRUE(trainer.ok()) << (trainer.ok() ? "" : trainer.diagnostics().errors().front().text());
  return trainer.ok() ? *std::move(trainer) : nullptr;
}

TrainingPlan plan(int64_t batch, const std::string& optimizer = "sgd") {
  TrainingPlan plan;
  plan.loss.name = "squared-error";
  plan.optimizer = optimizer;
  plan.batch = batch;
  return plan;
}

std::vector<double> weights(const Trainer& trainer) {
  std::vector<double> all = trainer.state("w")->doubles();
  all.push_back(trainer.state("b")->doubles()[0]);
  return all;
}

// Gradient descent over batches in order, in doubles.
std::vector<double> descended(int64_t batch, int64_t epochs, double rate, bool dropLast) {
  const Dataset data = points();
  const std::vector<double> x = data.inputs.at("x").doubles(), t = data.target.doubles();
  std::vector<double> w{0.5, -0.25, 0.125};
  for (int64_t epoch = 0; epoch < epochs; ++epoch)
    for (int64_t from = 0; from < kSamples; from += batch) {
      const int64_t end = std::min(from + batch, kSamples);
      if (dropLast && end - from < batch) continue;
      std::vector<double> g(3, 0);
      for (auto i = static_cast<size_t>(from); i < static_cast<size_t>(end); ++i) {
        const double error = x[2 * i] * w[0] + x[2 * i + 1] * w[1] + w[2] - t[i];
        const double scale = 2 * error / static_cast<double>(end - from);
        g[0] += scale * x[2 * i];
        g[1] += scale * x[2 * i + 1];
        g[2] += scale;
      }
      for (size_t k = 0; k < 3; ++k) w[k] -= rate * g[k];
    }
  return w;
}

void expectNear(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5);
}

TEST_F(TrainerTest, TakesStepsWithALastBatchThatIsNotFull) {
  const auto trainer = open(linear(4), plan(4));
  const auto fitted = trainer->fit(points(), {.epochs = 3, .rate = 0.1, .shuffle = false});
  ASSERT_TRUE(fitted.ok());
  EXPECT_EQ(trainer->position().step, 9);
  expectNear(weights(*trainer), descended(4, 3, 0.1, false));
}

TEST_F(TrainerTest, DropsTheLastBatch) {
  const auto trainer = open(linear(4), plan(4));
  ASSERT_TRUE(trainer->fit(points(), {.epochs = 3, .rate = 0.1, .shuffle = false, .dropLast = true}).ok());
  EXPECT_EQ(trainer->position().step, 6);
  expectNear(weights(*trainer), descended(4, 3, 0.1, true));
}

// The model takes 2 samples, a step 4, 5 or 10 of them: gradients of several runs add up to those of one.
TEST_F(TrainerTest, AddsUpGradientsOfSeveralRuns) {
  for (const int64_t batch : {4, 5, 10}) {
    const auto trainer = open(linear(2), plan(batch));
    EXPECT_TRUE(trainer->module().accumulates());
    ASSERT_TRUE(trainer->fit(points(), {.epochs = 2, .rate = 0.1, .shuffle = false}).ok());
    expectNear(weights(*trainer), descended(batch, 2, 0.1, false));
  }
}

TEST_F(TrainerTest, ShufflesBySeedAndEpoch) {
  const std::vector<int64_t> first = orderOf(100, true, 7, 0);
  EXPECT_EQ(first, orderOf(100, true, 7, 0));
  EXPECT_NE(first, orderOf(100, true, 7, 1));
  EXPECT_NE(first, orderOf(100, true, 8, 0));
  std::vector<int64_t> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, orderOf(100, false, 7, 0));
}

TEST_F(TrainerTest, EvaluatesAllSamplesOnce) {
  const auto trainer = open(linear(4), plan(4));
  const auto found = trainer->evaluate(points());
  ASSERT_TRUE(found.ok());
  const std::vector<double> x = points().inputs.at("x").doubles(), t = points().target.doubles();
  double sum = 0;
  for (size_t i = 0; i < t.size(); ++i) sum += std::pow(x[2 * i] * 0.5 - x[2 * i + 1] * 0.25 + 0.125 - t[i], 2);
  EXPECT_NEAR(Diagnosed<EvaluationResult>(found)->loss, sum / kSamples, 1e-5);
}

TEST_F(TrainerTest, GoesOnToTheSameBits) {
  for (const std::string optimizer : {"adam", "momentum"}) {
    const auto whole = open(linear(4), plan(4, optimizer), 3);
    ASSERT_TRUE(whole->fit(points(), {.epochs = 4, .rate = 0.01}).ok());
    // Stopped in the middle of the second epoch.
    const auto first = open(linear(4), plan(4, optimizer), 3);
    FitOptions options{.epochs = 4, .rate = 0.01, .checkpoint = path(optimizer)};
    int steps = 0;
    options.report = [&](const TrainingReport&) -> Diagnosed<bool> { return ++steps == 6; };
    ASSERT_TRUE(first->fit(points(), options).ok());
    const auto second = open(linear(4), plan(4, optimizer), 3);
    ASSERT_TRUE(second->fit(points(), {.epochs = 4, .rate = 0.01, .checkpoint = path(optimizer), .resume = true}).ok());
    EXPECT_EQ(second->position().step, whole->position().step);
    for (const Binding& state : whole->states())
      EXPECT_TRUE(*whole->state(state.name) == *second->state(state.name)) << state.name;
  }
}

TEST_F(TrainerTest, RefusesCheckpointsOfOthers) {
  const auto trainer = open(linear(4), plan(4, "adam"));
  ASSERT_TRUE(trainer->save(path("c")).ok());
  ASSERT_TRUE(trainer->restore(path("c")).ok());
  const auto other = open(linear(4), plan(4, "sgd"));
  const Status refused = other->restore(path("c"));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(),
              AllOf(HasSubstr("E102"), HasSubstr("optimizer adam"), HasSubstr("optimizer sgd")));
  TrainingPlan one = plan(4, "adam");
  one.variables = {"w"};
  EXPECT_THAT(open(linear(4), one)->restore(path("c")).error().text(), HasSubstr("another model"));
}

TEST_F(TrainerTest, RefusesDamagedCheckpoints) {
  const auto trainer = open(linear(4), plan(4, "adam"));
  ASSERT_TRUE(trainer->save(path("c")).ok());
  std::ifstream in(path("c"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto restoreOf = [&](const std::string& content) {
    std::ofstream(path("d"), std::ios::binary) << content;
    return trainer->restore(path("d"));
  };
  EXPECT_TRUE(restoreOf(bytes).ok());
  for (size_t size = 0; size < bytes.size(); size += 37) {
    const Status cut = restoreOf(bytes.substr(0, size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.error().code, Code::BadFile);
  }
  for (size_t i = 0; i < bytes.size(); i += 11) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(restoreOf(changed).ok()) << i;
  }
  EXPECT_TRUE(trainer->restore(path("c")).ok());
}

TEST_F(TrainerTest, NamesTheOperatorThatMadeTheFirstInfinity) {
  Module module;
  Builder b(*module.addFunction("main"));
  const Value x = b.input("x", Type(ElemKind::Float32, Shape{2, 1}));
  const Value w = b.constant(Tensor::of(Type(ElemKind::Float32, Shape{1}), std::vector<double>{1}), "w");
  const Value scaled = b.mul(x, w);
  b.named("logarithm");
  const Value logs = b.log(scaled);
  b.named("after");
  b.output("y", b.mul(logs, b.scalarLike(logs, 2)));
  ASSERT_TRUE(writeModule(path("log.graph"), module).ok());
  const auto trainer = open({.path = path("log.graph"), .model = {}, .file = {}}, plan(2));
  const Type column(ElemKind::Float32, Shape{6, 1});
  const Dataset data{.inputs = {{"x", Tensor::of(column, std::vector<double>{1, 2, 3, 4, 5, 0})}},
                     .target = Tensor::of(column, std::vector<double>{0, 0, 0, 0, 0, 0})};
  const auto fitted = trainer->fit(data, {.rate = 1e-4, .shuffle = false});
  ASSERT_FALSE(fitted.ok());
  EXPECT_THAT(
      fitted.diagnostics().errors().front().text(),
      AllOf(HasSubstr("E208"), HasSubstr("step 3 of epoch 1"), HasSubstr("'logarithm' (Log)"), HasSubstr("infinity")));
}

// The loss is still finite when an update overflows: the step that did it is found.
TEST_F(TrainerTest, FindsTheUpdateThatOverflowed) {
  const auto trainer = open(linear(2), plan(2));
  const auto fitted = trainer->fit(points(), {.epochs = 40, .rate = 1e30, .shuffle = false});
  ASSERT_FALSE(fitted.ok());
  EXPECT_THAT(fitted.diagnostics().errors().front().text(), HasSubstr("made the first"));
}

// Only the last step of all goes wrong: no loss comes after it.
TEST_F(TrainerTest, FindsALastStepThatOverflowed) {
  const auto trainer = open(linear(2), plan(2));
  FitOptions options{.epochs = 1, .shuffle = false};
  options.rateOf = [](int64_t step) -> Diagnosed<double> { return step == 4 ? 3e38 * 10 : 0.01; };
  const auto fitted = trainer->fit(points(), options);
  ASSERT_FALSE(fitted.ok());
  EXPECT_THAT(fitted.diagnostics().errors().front().text(),
              AllOf(HasSubstr("is not finite in step 5 of epoch 1"), HasSubstr("E208")));
}

TEST_F(TrainerTest, SaysWhichArrayDoesNotFit) {
  const auto trainer = open(linear(4), plan(4));
  const auto faultOf = [&](const Dataset& data) {
    const auto fitted = trainer->fit(data, {});
    return fitted.ok() ? std::string() : fitted.diagnostics().errors().front().text();
  };
  Dataset data = points();
  data.inputs["y"] = data.inputs["x"];
  EXPECT_THAT(faultOf(data), AllOf(HasSubstr("no input 'y'"), HasSubstr("did you mean 'x'")));
  data = points();
  data.inputs["x"] = Tensor(Type(ElemKind::Float32, Shape{kSamples, 3}));
  EXPECT_THAT(faultOf(data), AllOf(HasSubstr("f32[N,2]"), HasSubstr("f32[10,3]")));
  data.inputs["x"] = Tensor(Type(ElemKind::Float32, Shape{9, 2}));
  EXPECT_THAT(faultOf(data), AllOf(HasSubstr("9 samples"), HasSubstr("10")));
  data.inputs.clear();
  EXPECT_THAT(faultOf(data), AllOf(HasSubstr("E103"), HasSubstr("'x'")));
}

TEST_F(TrainerTest, StopsEarlyAndKeepsTheBest) {
  const auto trainer = open(linear(4), plan(4));
  const Dataset data = points();
  // The rate is so large that it only gets worse after the first epochs.
  const auto fitted = trainer->fit(
      data, {.epochs = 50, .rate = 1.2, .shuffle = false, .validation = &data, .patience = 3, .restoreBest = true});
  ASSERT_TRUE(fitted.ok());
  const FitResult result = *Diagnosed<FitResult>(fitted);
  EXPECT_TRUE(result.stoppedEarly);
  EXPECT_LT(result.epochs, 50);
  double best = INFINITY;
  for (const TrainingReport& report : result.history) best = std::min(best, *report.validationLoss);
  EXPECT_FLOAT_EQ(static_cast<float>(trainer->evaluate(data)->loss), static_cast<float>(best));
}

TEST(Schedules, AreFactorsOfTheRate) {
  const auto factor = [](const std::string& text, int64_t step) {
    const auto schedule = RateSchedule::parse(text);
    EXPECT_TRUE(schedule.ok()) << text;
    return schedule->factor(step, 100, 10);
  };
  EXPECT_EQ(factor("constant", 99), 1);
  EXPECT_EQ(factor("linear", 50), 0.5);
  EXPECT_NEAR(factor("cosine", 50), 0.5, 1e-12);
  EXPECT_NEAR(factor("exponential=0.5", 25), 0.25, 1e-12);
  EXPECT_NEAR(factor("step=3:0.1", 65), 0.01, 1e-12);
  EXPECT_EQ(factor("constant,warmup=10", 4), 0.5);
  for (const std::string text : {"", "cosin", "step=3", "exponential=x", "constant=1", "linear,cold=2"})
    EXPECT_FALSE(RateSchedule::parse(text).ok()) << text;
}

TEST(Variables, AreChosenByNamesAndPatterns) {
  const std::vector<std::string> names{"conv.weight", "conv.bias", "head.weight"};
  const auto chosen = [&](const std::vector<std::string>& patterns) {
    const auto found = chooseVariables(patterns, names, {"folded"});
    EXPECT_TRUE(found.ok());
    return std::vector<std::string>(found->names.begin(), found->names.end());
  };
  EXPECT_THAT(chosen({"all"}), ElementsAre("conv.bias", "conv.weight", "head.weight"));
  EXPECT_THAT(chosen({"*.weight"}), ElementsAre("conv.weight", "head.weight"));
  EXPECT_THAT(chosen({"all", "!conv.*"}), ElementsAre("head.weight"));
  EXPECT_THAT(chosen({"folded"}), ElementsAre("folded"));
  const auto unknown = chooseVariables({"head.wieght", "tail.*"}, names);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().text(),
              AllOf(HasSubstr("'head.wieght', 'tail.*'"), HasSubstr("did you mean 'head.weight'?")));
}

}  // namespace
}  // namespace aglow
