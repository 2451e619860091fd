// A model that learns from arrays: steps, epochs, evaluation, checkpoints, and the model with its new weights as a
// file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/network.h"
#include "train/checkpoint.h"
#include "train/data.h"
#include "train/schedule.h"
#include "train/training_module.h"

namespace aglow {

// What a step or an epoch came to.
struct TrainingReport {
  bool ofEpoch = false;
  int64_t epoch = 0, epochs = 0;  // from 1
  int64_t step = 0, steps = 0;    // of the epoch, from 1
  double loss = 0;                // of the step, or the mean of the epoch
  double rate = 0;
  double samplesPerSecond = 0;
  std::optional<double> validationLoss, accuracy;  // of an epoch
  bool isBest = false;                             // the validation loss is the least so far
};
// "epoch 3/10 [=====>    ] 40/80 loss 0.123 1200 samples/s": one line for a screen of this width.
std::string progressLine(const TrainingReport& report, int width);
// "epoch 3/10: loss 0.123, validation loss 0.145, accuracy 97.5 %, 1200 samples/s"
std::string epochLine(const TrainingReport& report);

struct FitOptions {
  int64_t epochs = 1;
  double rate = 1e-3;
  RateSchedule schedule = {};
  std::function<Diagnosed<double>(int64_t step)> rateOf = {};  // instead of rate and schedule
  bool shuffle = true;
  bool dropLast = false;  // a last batch that is not full; otherwise it is filled up with samples that do not count
  const Dataset* validation = nullptr;
  int64_t patience = 0;      // epochs without a better validation loss after which it stops; 0: never
  double minDelta = 0;       // by how much it has to be better
  bool restoreBest = false;  // ends with the variables of the best epoch
  std::string checkpoint = {};
  int64_t checkpointEvery = 0;  // steps; 0: epochs
  bool resume = false;          // goes on where the checkpoint is, if there is one
  // Called after each step and each epoch; true ends the training.
  std::function<Diagnosed<bool>(const TrainingReport&)> report = {};
};

struct FitResult {
  int64_t epochs = 0, steps = 0;  // since the training began
  double loss = 0;                // of the last epoch
  double seconds = 0;             // of this fit
  double samplesPerSecond = 0;
  bool stoppedEarly = false;
  std::vector<TrainingReport> history;  // of this fit's epochs
};

struct EvaluationResult {
  double loss = 0;
  std::optional<double> accuracy;  // of losses that take labels
};

// Safe from several threads, which take turns. What reports are given to may call it.
class Trainer {
public:
  static Diagnosed<std::unique_ptr<Trainer>> open(TrainingSource source, TrainingPlan plan, CompileOptions compile = {},
                                                  const BackendOptions& backend = {}, uint64_t seed = 0);

  const TrainingModule& module() const { return module_; }
  const std::vector<std::string>& variables() const { return module_.step.variables; }
  const TrainingPosition& position() const { return position_; }

  // RuntimeValue, with the operator that made it, where a loss is not finite.
  Diagnosed<FitResult> fit(const Dataset& data, const FitOptions& options);
  Diagnosed<EvaluationResult> evaluate(const Dataset& data);
  // The output that is trained, for each sample.
  Diagnosed<Tensor> predict(const std::map<std::string, Tensor>& inputs);

  Result<Tensor> state(const std::string& name) const;
  Status setState(const std::string& name, const Tensor& value);
  std::vector<Binding> states() const;
  // Begins again, with the weights of the model that was read.
  Status reset();

  Status save(const std::string& path) const;
  Status restore(const std::string& path);

  // The model that was read, with the variables as they are now: an ONNX file stays what it is otherwise; of others
  // the graph is written, for the sizes of a run.
  Status addModel(FileSet& files, const std::string& path) const;
  Status exportModel(const std::string& path) const;
  // The module with all its functions as a text form, which can become a bundle that trains. Its state begins with the
  // weights as they are now, and with an optimizer that remembers nothing.
  Status exportModule(const std::string& path) const;

private:
  // One function of the network, with memory for what it takes and gives.
  struct Call {
    size_t function = 0;
    std::vector<Tensor> inputs, outputs;
  };
  using Saved = std::map<std::string, Tensor>;
  friend class Fitting;

  Trainer(TrainingSource source, TrainingPlan plan, TrainingModule module, std::unique_ptr<Network> network,
          uint64_t seed);

  Result<Call> callOf(const std::string& function) const;
  // Fills the inputs with these samples, each with this weight, and runs.
  Status run(Call& call, const CheckedData& data, std::span<const int64_t> rows, double weight);
  Status run(Call& call) const;
  void bind(Call& call, const std::string& placeholder, const std::function<void(Tensor&)>& fill) const;
  const Tensor& outputOf(const Call& call, const std::string& placeholder) const;
  // One step with these samples; its loss.
  Result<double> step(const CheckedData& data, std::span<const int64_t> rows, double rate);
  // Counters of runs, which random numbers follow from, begin with the seed.
  Status seedCounters();
  Result<Saved> saved() const;
  // BadBinding where there is none of this name.
  Result<size_t> stateIndex(const std::string& name) const;
  Status restore(const Saved& states);
  Result<Checkpoint> checkedCheckpoint(const std::string& path) const;

  TrainingSource source_;
  TrainingPlan plan_;
  TrainingModule module_;  // the network has one of its own
  std::unique_ptr<Network> network_;
  mutable std::recursive_mutex mutex_;  // of all below
  Call predict_, evaluate_, train_, update_;
  TrainingPosition position_;
};

}  // namespace aglow
