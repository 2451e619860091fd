// Training as one more function of a module: the forward function, the gradients of its loss, an optimizer's update of
// every variable, and a Save of all that changes. What optimizers remember is state of the module.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grad/settings.h"
#include "graph/builder.h"

namespace aglow {

// An optimizer by name.
struct OptimizerRow {
  std::string_view name;
  std::string_view doc;
  std::vector<Setting> settings;
  std::vector<std::string_view> memory;  // what it remembers of each variable; zeros at first
};
std::vector<OptimizerRow> optimizers();

struct TrainingStep {
  std::string name = "train";          // of the new function
  std::string loss;                    // an output of the forward function: the sum of its elements shall become less
  std::vector<std::string> variables;  // storage of the module: state, or constants, which become state
  std::string optimizer = "sgd";
  GivenSettings settings = {};  // of the optimizer
  double clipValue = 0;         // gradients are held between -clipValue and clipValue
  double clipNorm = 0;          // the norm of all gradients together is held below it
  // Where a batch is too large for one run: the function only adds up gradients, and another one, NAME.update, takes
  // the step with their sum.
  bool accumulate = false;
  // Batch norms use the statistics of their batch and move the running ones, which become state, towards them: what
  // those keep of themselves, below 1. Without it they stay as they are when a model predicts.
  std::optional<double> batchNormMomentum = {};
};

inline std::string updateName(const TrainingStep& step) { return step.name + ".update"; }

// Adds the function, which takes what the forward function takes, and gives what that gives. What takes the step, the
// function itself or the one for updates, takes the placeholder `rate` too.
// Usage names all variables, settings, losses and optimizers that are not there.
Result<Function*> addTrainingStep(Function& forward, const TrainingStep& step);

}  // namespace aglow
