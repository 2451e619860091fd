// The module of a training: the model's function as it is, one that compares its output with targets, and one, or two,
// that take a step. All of them share the variables, which are state.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "grad/initializers.h"
#include "grad/losses.h"
#include "grad/training.h"
#include "import/onnx/importer.h"
#include "train/source.h"

namespace aglow {

struct TrainingPlan {
  Loss loss;
  std::string optimizer = "adam";
  GivenSettings settings = {};  // of the optimizer
  double clipValue = 0, clipNorm = 0;
  std::optional<double> batchNormMomentum = {};  // as a TrainingStep has it
  std::vector<std::string> variables{"all"};     // names and patterns (variables.h)
  // First values instead of the model's, for names and patterns; the last that fits a variable counts. Under a pattern
  // what is too small for it, as biases are for weights', stays as it is.
  std::vector<std::pair<std::string, Initializer>> initializers = {};
  uint64_t seed = 0;                          // of the first values
  std::map<std::string, Tensor> values = {};  // first values of storage by name, whatever initializers say
  std::string function = {};                  // of a text form; empty: the only one, or main
  int64_t batch = 32;                         // samples of a step
  int64_t accumulate = 1;                     // runs that a step is cut into; more where the model has its own batch
  std::map<std::string, Tensor> fixed = {};   // inputs that are no samples: the same in every run
  // Inputs, and the output that is compared, whose samples lie along another axis than the first, by name. What trains
  // takes and gives them with samples first.
  std::map<std::string, int64_t> sampleAxes = {};
  onnx::ImportOptions import = {};  // sizes that the model leaves open, but for the batch
};

// An input with a sample in each row.
struct SampleInput {
  std::string name;         // the model's
  std::string placeholder;  // the module's
  Type type;                // with as many rows as a run takes
};

struct TrainingModule {
  std::unique_ptr<Module> module;
  std::string predict;  // functions by name
  std::string evaluate = "evaluate";
  TrainingStep step = {};  // what was made of the plan
  AddedLoss loss = {};
  std::vector<SampleInput> inputs = {};
  std::map<std::string, Tensor> fixed = {};  // by placeholder
  std::vector<std::string> changed = {};     // floats of the model that steps write: the variables, and statistics
  int64_t samples = 0;                       // of a run
  int64_t runs = 1;                          // of a step
  std::string model;                         // a hash of what is trained, but for the variables' values
  std::string settings;                      // of the loss and the optimizer, in words

  bool accumulates() const { return step.accumulate; }
};

Diagnosed<TrainingModule> makeTrainingModule(const TrainingSource& source, const TrainingPlan& plan);
// The model's function alone, with these values of its variables for good.
Diagnosed<TrainingModule> makeTrainedModule(const TrainingSource& source, const TrainingPlan& plan,
                                            const std::map<std::string, Tensor>& values);

}  // namespace aglow
