// Gradients of every operator that has them, against differences in f64, and their types in other kinds. A new record
// is taken in by itself.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compile/evaluate.h"
#include "grad/differentiate.h"
#include "graph/builder.h"
#include "graph/verifier.h"
#include "lower/lower.h"
#include "ops/all_ops.h"
#include "ops/type_rules.h"
#include "random_graph.h"

namespace aglow {
namespace {

// A function of one operator: its results, each times random numbers, summed to one; and what it takes.
struct Instance {
  std::unique_ptr<Module> module = std::make_unique<Module>();
  Function* function = nullptr;
  std::vector<Value> variables;  // operands of one kind
  NamedTensors bindings;
  Value loss;
};

Value weighted(Builder& b, Random& random, Value v) {
  const Value numbers = b.constant(randomTensor(random, v.type(), -1, 1));
  return b.reduced(
      b.mul(v, numbers), "sum",
      [&] {
        std::vector<int64_t> axes;
        for (int a = 0; a < v.rank(); ++a) axes.push_back(a);
        return axes;
      }(),
      false);
}

// The sum of random multiples of the values of a kind among some; empty when there is none.
Value summed(Builder& b, Random& random, const std::vector<Value>& values, ElemKind kind = ElemKind::Float64) {
  Value sum;
  for (const Value v : values) {
    if (v.kind() != kind || v.type().elements() == 0) continue;
    const Value part = weighted(b, random, v);
    sum = sum ? b.add(sum, part) : part;
  }
  return sum;
}

std::optional<Instance> drawInstance(const OpDef& op, uint64_t seed, ElemKind kind = ElemKind::Float64) {
  Random random(seed * 7919 + 17);
  RandomOptions options;
  options.kinds = kindSet(kind);
  options.maxElements = 60;
  std::optional<OpUse> use = drawUse(random, op, options);
  if (!use) return std::nullopt;
  // Conversions on the way would round what differences are taken of.
  for (int i = 0; i < op.attrs.size(); ++i)
    if (op.attrs[i].kind == AttrKind::Elem) use->attrs.setAt(i, kind);
  Instance made;
  made.function = made.module->addFunction("main");
  Builder b(*made.function);
  // Every other time from where roots and logarithms are defined.
  const double low = seed % 2 == 0 ? std::max(op.probe.low, 0.1) : op.probe.low;
  std::vector<Value> inputs;
  for (size_t i = 0; i < use->in.size(); ++i) {
    if (!use->in[i]) {
      inputs.emplace_back();
      continue;
    }
    const Type& type = *use->in[i];
    const OperandDef& def = op.in[std::min(static_cast<int>(i), op.in.size() - 1)];
    if (def.kinds == kinds::indices) {
      int64_t least = std::numeric_limits<int64_t>::max();
      for (const int64_t d : use->in[0]->shape().dims()) least = std::min(least, std::max<int64_t>(d, 1));
      inputs.push_back(b.constant(randomTensor(random, type, 0, static_cast<double>(std::min<int64_t>(least, 9) - 1))));
      continue;
    }
    const Value v = b.input("x" + std::to_string(i), type);
    made.bindings.emplace(v.node->name(), randomTensor(random, type, low, op.probe.high));
    if (type.kind() == kind && type.elements() > 0) made.variables.push_back(v);
    inputs.push_back(v);
  }
  const auto node = building([&] { return b.make(inputs, use->attrs); });
  if (!node.ok() || made.variables.empty()) return std::nullopt;
  std::vector<Value> results;
  for (int i = 0; i < (*node)->resultCount(); ++i) results.push_back((*node)->result(i));
  made.loss = summed(b, random, results, kind);
  if (!made.loss) return std::nullopt;
  return made;
}

double lossAt(const Instance& at, const NamedTensors& bindings) {
  const auto values = evaluateFunction(*at.function, bindings);
  return values.ok() ? values->front().doubles().front() : std::nan("");
}

// The derivative along a random direction of each variable, from the gradients and from differences.
::testing::AssertionResult agrees(Instance& at, Random& random) {
  Builder b(*at.function);
  std::vector<Value> gradients;
  for (const Value x : at.variables) gradients.push_back(b.gradient(at.loss, x));
  b.output("loss", at.loss);
  for (const Value g : gradients) b.output("dx", g);
  const auto done = differentiate(*at.function, lowerRule);
  if (!done.ok()) return ::testing::AssertionFailure() << done.error().text();
  const auto values = evaluateFunction(*at.function, at.bindings);
  if (!values.ok()) return ::testing::AssertionFailure() << values.error().text();
  const double loss = values->front().doubles().front();
  for (size_t i = 0; i < at.variables.size(); ++i) {
    const Value x = at.variables[i];
    const std::vector<double> gradient = (*values)[i + 1].doubles();
    const Tensor& start = at.bindings.at(x.node->name());
    const std::vector<double> direction = randomTensor(random, x.type(), -1, 1).doubles();
    constexpr double kStep = 1e-5;
    NamedTensors moved = at.bindings;
    const auto along = [&](double by) {
      std::vector<double> point = start.doubles();
      for (size_t k = 0; k < point.size(); ++k) point[k] += by * direction[k];
      moved.at(x.node->name()) = Tensor::fromDoubles(x.type(), point);
      return lossAt(at, moved);
    };
    const auto slopeOver = [&](double step) { return (along(step) - along(-step)) / (2 * step); };
    // Both together leave out what the third derivative adds, as near a pole.
    const double difference = (4 * slopeOver(kStep / 2) - slopeOver(kStep)) / 3;
    double slope = 0, scale = 1e-2 * (1 + std::abs(loss));
    for (size_t k = 0; k < gradient.size(); ++k) {
      slope += gradient[k] * direction[k];
      scale += std::abs(gradient[k] * direction[k]);
    }
    if (!(std::abs(slope - difference) <= 1e-5 * scale))
      return ::testing::AssertionFailure() << "by " << x.node->name() << " " << x.type().text() << ": " << slope
                                           << ", differences give " << difference;
  }
  return ::testing::AssertionSuccess();
}

// Outside of where a function is defined it has no gradient.
bool isDefined(Instance& at) {
  Function* copy = at.module->clone(*at.function, "copy");
  Builder(*copy).output("loss", copy->back()->result());
  const auto done = differentiate(*copy, lowerRule);
  const auto values = evaluateFunction(*copy, at.bindings);
  at.module->eraseFunction(copy);
  EXPECT_TRUE(done.ok()) << done.error().text();
  return values.ok() && std::isfinite(values->front().doubles().front());
}

class GradientOf : public ::testing::TestWithParam<std::string> {
protected:
  // Draws uses until `wanted` of them have been compared.
  static void compare(int wanted, bool second) {
    const OpDef& op = opDef(*findOp(GetParam()));
    int checked = 0;
    for (uint64_t seed = 1; seed <= 60 && checked < wanted; ++seed) {
      std::optional<Instance> instance = drawInstance(op, second ? seed + 100 : seed);
      if (!instance) continue;
      Random random(seed);
      if (second) {
        Builder b(*instance->function);
        std::vector<Value> gradients;
        for (const Value x : instance->variables) gradients.push_back(b.gradient(instance->loss, x));
        instance->loss = summed(b, random, gradients);
      }
      if (!isDefined(*instance)) continue;
      EXPECT_TRUE(agrees(*instance, random)) << "seed " << seed;
      ++checked;
    }
    EXPECT_EQ(checked, wanted) << "too few uses could be compared";
  }
};

TEST_P(GradientOf, IsWhatDifferencesGive) { compare(5, false); }

TEST_P(GradientOf, HasAGradientItself) { compare(2, true); }

TEST_P(GradientOf, IsOfEveryKind) {
  const OpDef& op = opDef(*findOp(GetParam()));
  for (const ElemKind kind : {ElemKind::Float32, ElemKind::Float16, ElemKind::BFloat16})
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      std::optional<Instance> instance = drawInstance(op, seed, kind);
      if (!instance) continue;
      Builder b(*instance->function);
      for (const Value x : instance->variables) b.output("dx", b.gradient(instance->loss, x));
      const auto done = differentiate(*instance->function, lowerRule);
      EXPECT_TRUE(done.ok()) << done.error().text();
      const Status verified = verify(*instance->module);
      EXPECT_TRUE(verified.ok()) << verified.error().text();
    }
}

// What differences can tell of: elements of f64 in and out.
std::vector<std::string> differentiable() {
  std::vector<std::string> names;
  for (const OpDef* op : allOps()) {
    if (op->gradientBy() == GradientBy::None || op->gradientBy() == GradientBy::Zero) continue;
    if (opOf(*op) == Op::Regression) continue;  // has the gradient of another function, as its record says
    const bool takes = std::any_of(op->in.begin(), op->in.end(),
                                   [](const OperandDef& in) { return contains(in.kinds, ElemKind::Float64); });
    if (takes && op->infer != infer::broadcastToBool) names.emplace_back(op->name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, GradientOf, ::testing::ValuesIn(differentiable()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace aglow
