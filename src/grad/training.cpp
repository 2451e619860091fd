#include "grad/training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "grad/batch_norms.h"
#include "grad/losses.h"
#include "grad/shapes.h"
#include "graph/wide.h"
#include "support/quote.h"

namespace aglow {

namespace {

// What an optimizer sees of one variable.
struct Update {
  Builder& b;
  Value variable, gradient;
  std::vector<Value> memory;
  Value rate, count;  // f64: what is multiplied by a power of almost one needs the digits; steps before this one
  const grad::SettingValues& settings;

  double setting(std::string_view name) const { return settings.at(name); }
  Value number(double value) const { return b.scalar(ElemKind::Float64, value); }
  Value asVariable(Value scalar) const { return b.casted(scalar, variable.kind()); }
};
// The new variable, then what is remembered.
using UpdateRule = std::vector<Value>(const Update& u);

std::vector<Value> resultsOf(Node* node) {
  std::vector<Value> results;
  for (int i = 0; i < node->resultCount(); ++i) results.push_back(node->result(i));
  return results;
}

std::vector<Value> sgd(const Update& u) {
  return {u.b.sgd(u.variable, u.gradient, u.asVariable(u.rate), {.decay = u.setting("decay")})};
}

std::vector<Value> withMomentum(const Update& u, bool nesterov) {
  Builder& b = u.b;
  const Value isFirst = b.equal(u.count, u.number(0));
  const Value share = b.where(isFirst, u.number(1), u.number(1 - u.setting("dampening")));
  return resultsOf(b.momentum(u.variable, u.gradient, u.memory[0], u.asVariable(u.rate), u.asVariable(share),
                              {.alpha = u.setting("momentum"), .decay = u.setting("decay"), .nesterov = nesterov}));
}

std::vector<Value> momentum(const Update& u) { return withMomentum(u, false); }
std::vector<Value> nesterov(const Update& u) { return withMomentum(u, true); }

// Running means begin at zero: rate and epsilon make up for it.
std::vector<Value> adamOf(const Update& u, Value variable, double decay) {
  Builder& b = u.b;
  const Value step = b.add(u.count, u.number(1));
  const auto seen = [&](std::string_view weight) {
    return b.sub(u.number(1), b.pow(u.number(u.setting(weight)), step));
  };
  const Value root = b.sqrt(seen("beta"));
  const Value rate = b.div(b.mul(u.rate, root), seen("alpha"));
  const Value epsilon = b.mul(root, u.number(u.setting("epsilon")));
  return resultsOf(b.adam(variable, u.gradient, u.memory[0], u.memory[1], u.asVariable(rate), u.asVariable(epsilon),
                          {.alpha = u.setting("alpha"), .beta = u.setting("beta"), .decay = decay}));
}

std::vector<Value> adam(const Update& u) { return adamOf(u, u.variable, u.setting("decay")); }

std::vector<Value> adamW(const Update& u) {
  Builder& b = u.b;
  const Value kept = b.sub(u.number(1), b.mul(u.rate, u.number(u.setting("decay"))));
  return adamOf(u, b.mul(u.variable, u.asVariable(kept)), 0);
}

std::vector<Value> rmsProp(const Update& u) {
  return resultsOf(
      u.b.rmsProp(u.variable, u.gradient, u.memory[0], u.asVariable(u.rate),
                  {.beta = u.setting("beta"), .epsilon = u.setting("epsilon"), .decay = u.setting("decay")}));
}

std::vector<Value> adagrad(const Update& u) {
  return resultsOf(u.b.adagrad(u.variable, u.gradient, u.memory[0], u.asVariable(u.rate),
                               {.epsilon = u.setting("epsilon"), .decay = u.setting("decay")}));
}

struct Row : OptimizerRow {
  UpdateRule* update = nullptr;
  bool counts = false;  // whether the first steps differ
};

const std::vector<Row>& table() {
  static const std::vector<Setting> kMomentum{{"momentum", 0.9}, {"dampening", 0}, {"decay", 0}};
  static const std::vector<Setting> kAdam{{"alpha", 0.9}, {"beta", 0.999}, {"epsilon", 1e-8}, {"decay", 0}};
  static const std::vector<Setting> kAdamW{{"alpha", 0.9}, {"beta", 0.999}, {"epsilon", 1e-8}, {"decay", 0.01}};
  static const std::vector<Row> rows{
      {{"sgd", "against the gradient", {{"decay", 0}}, {}}, sgd},
      {{"momentum", "against a running sum of gradients", kMomentum, {"velocity"}}, momentum, true},
      {{"nesterov", "momentum that looks one step ahead", kMomentum, {"velocity"}}, nesterov, true},
      {{"adam", "against the mean of gradients, divided by their size", kAdam, {"mean", "square"}}, adam, true},
      {{"adamw", "adam with a decay that is not part of the gradient", kAdamW, {"mean", "square"}}, adamW, true},
      {{"rmsprop",
        "against the gradient, divided by the size of recent ones",
        {{"beta", 0.99}, {"epsilon", 1e-8}, {"decay", 0}},
        {"square"}},
       rmsProp},
      {{"adagrad",
        "against the gradient, divided by the size of all so far",
        {{"epsilon", 1e-10}, {"decay", 0}},
        {"squares"}},
       adagrad},
  };
  return rows;
}

// ---------------------------------------------------------------- what is asked for

void checkVariables(const Function& forward, const TrainingStep& step, grad::Faults& faults) {
  std::vector<std::string_view> names;
  for (const auto& node : forward.module().storage()) {
    const bool canChange = initialBytes(*node) != nullptr && isFloat(node->type().kind());
    if (canChange) names.push_back(node->name());
  }
  if (step.variables.empty()) faults.add("no variable is named");
  for (const std::string& name : step.variables) {
    const Node* node = forward.module().findStorage(name);
    if (node == nullptr)
      faults.unknown("variable", name, names);
    else if (std::find(names.begin(), names.end(), name) == names.end())
      faults.add(fmt::format("{} is not a variable: expected a constant or state of floats, got {} {}", quoted(name),
                             initialBytes(*node) == nullptr ? "an input of" : "storage of", node->type().text()));
    if (std::count(step.variables.begin(), step.variables.end(), name) > 1)
      faults.add(fmt::format("variable {} is named more than once", quoted(name)));
  }
}

// ---------------------------------------------------------------- the function

class StepBuilder {
public:
  StepBuilder(Function& function, const TrainingStep& step, const Row& row, const grad::SettingValues& settings)
      : b_(function), step_(step), row_(row), settings_(settings) {}

  std::vector<Value> gradients(Value loss, const std::vector<Placeholder*>& variables) {
    std::vector<Value> all;
    for (Placeholder* v : variables) all.push_back(b_.named(gradientName(*v)).gradient(loss, v->result()));
    return all;
  }

  // Adds gradients to what the runs before have left.
  void addUp(const std::vector<Value>& gradients, const std::vector<Placeholder*>& sums) {
    for (size_t i = 0; i < sums.size(); ++i) b_.save(b_.add(sums[i]->result(), gradients[i]), sums[i]);
  }
  std::vector<Placeholder*> sums(const std::vector<Placeholder*>& variables) {
    std::vector<Placeholder*> all;
    for (Placeholder* v : variables) all.push_back(b_.state(gradientName(*v), Tensor(v->type())));
    return all;
  }
  void clear(const std::vector<Placeholder*>& sums) {
    for (Placeholder* sum : sums) b_.save(grad::zeros(b_, sum->type()), sum);
  }

  void step(std::vector<Value> gradients, const std::vector<Placeholder*>& variables) {
    clip(gradients);
    const Value rate = b_.casted(b_.input("rate", Type(ElemKind::Float32, Shape{})), ElemKind::Float64);
    Placeholder* count = nullptr;
    if (row_.counts) count = b_.state(step_.name + ".steps", Tensor::scalar(ElemKind::Int64, 0));
    const Value before = count != nullptr ? b_.casted(count->result(), ElemKind::Float64) : Value{};
    for (size_t i = 0; i < variables.size(); ++i) update(variables[i], gradients[i], rate, before);
    if (count != nullptr) b_.save(b_.add(count->result(), b_.scalar(ElemKind::Int64, 1)), count);
  }

private:
  static std::string gradientName(const Placeholder& variable) { return variable.name() + ".gradient"; }

  void clip(std::vector<Value>& gradients) {
    b_.named("clip");
    if (step_.clipValue > 0)
      for (Value& g : gradients) g = b_.clip(g, b_.scalarLike(g, -step_.clipValue), b_.scalarLike(g, step_.clipValue));
    if (step_.clipNorm <= 0) return;
    Value squares;
    for (const Value g : gradients) {
      const Value wide = b_.casted(g, ElemKind::Float64);
      const Value sum = b_.reduced(b_.mul(wide, wide), "sum", grad::axesBetween(0, g.rank()), false);
      squares = squares ? b_.add(squares, sum) : sum;
    }
    // As others do it, so that a norm of zero divides nothing by zero.
    const Value norm = b_.add(b_.sqrt(squares), b_.scalarLike(squares, 1e-6));
    const Value factor = b_.min(b_.div(b_.scalarLike(norm, step_.clipNorm), norm), b_.scalarLike(norm, 1));
    for (Value& g : gradients) g = b_.mul(g, b_.casted(factor, g.kind()));
  }

  void update(Placeholder* variable, Value gradient, Value rate, Value count) {
    b_.named(variable->name() + ".new");
    Update u{.b = b_,
             .variable = variable->result(),
             .gradient = gradient,
             .memory = {},
             .rate = rate,
             .count = count,
             .settings = settings_};
    std::vector<Placeholder*> targets{variable};
    for (const std::string_view what : row_.memory) {
      targets.push_back(b_.state(fmt::format("{}.{}", variable->name(), what), Tensor(variable->type())));
      u.memory.push_back(targets.back()->result());
    }
    const std::vector<Value> results = row_.update(u);
    for (size_t i = 0; i < targets.size(); ++i) b_.save(results[i], targets[i]);
  }

  Builder b_;
  const TrainingStep& step_;
  const Row& row_;
  const grad::SettingValues& settings_;
};

}  // namespace

std::vector<OptimizerRow> optimizers() { return {table().begin(), table().end()}; }

Result<Function*> addTrainingStep(Function& forward, const TrainingStep& step) {
  Module& module = forward.module();
  grad::Faults faults;
  const Row* row = grad::findRow(table(), "optimizer", step.optimizer, faults);
  const grad::SettingValues settings =
      row != nullptr ? grad::settingsOf(row->name, row->settings, step.settings, faults) : grad::SettingValues();
  checkVariables(forward, step, faults);
  std::vector<std::string_view> outputs;
  for (const Placeholder* output : outputsOf(forward)) outputs.push_back(output->name());
  const Value loss = savedAs(forward, step.loss);
  if (!loss) faults.unknown("output", step.loss, outputs);
  if (loss && !isFloat(loss.kind()))
    faults.add(fmt::format("expected a loss of floats, got {} of {}", quoted(step.loss), loss.type().text()));
  if (step.batchNormMomentum && !(*step.batchNormMomentum >= 0 && *step.batchNormMomentum < 1))
    faults.add(
        fmt::format("expected a momentum of batch norms from 0 to less than 1, got {}", *step.batchNormMomentum));
  for (const std::string& name : {step.name, updateName(step)})
    if (module.findFunction(name) != nullptr && (step.accumulate || name == step.name))
      faults.add(fmt::format("there is a function {} already", quoted(name)));
  AGLOW_OK(faults.status());

  std::vector<Placeholder*> variables;
  for (const std::string& name : step.variables) {
    Node* node = module.findStorage(name);
    variables.push_back(node->op() == Op::Constant ? module.thaw(static_cast<Constant*>(node))
                                                   : static_cast<Placeholder*>(node));
  }
  Function* made = module.clone(forward, step.name);
  const auto built = building([&] {
    if (step.batchNormMomentum) trainBatchNorms(*made, *step.batchNormMomentum);
    StepBuilder whole(*made, step, *row, settings);
    const std::vector<Value> gradients = whole.gradients(savedAs(*made, step.loss), variables);
    if (!step.accumulate) {
      whole.step(gradients, variables);
      return Unit{};
    }
    const std::vector<Placeholder*> sums = whole.sums(variables);
    whole.addUp(gradients, sums);
    StepBuilder update(*module.addFunction(updateName(step)), step, *row, settings);
    std::vector<Value> added;
    for (Placeholder* sum : sums) added.push_back(sum->result());
    update.step(added, variables);
    update.clear(sums);
    return Unit{};
  });
  if (!built.ok()) return built.error();
  return made;
}

}  // namespace aglow
