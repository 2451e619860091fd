// aglow train: a model learns from arrays, and is written with its new weights.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/run_request.h"
#include "compile/packages.h"
#include "import/onnx/external_data.h"
#include "support/suggest.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "train/trainer.h"

namespace aglow::cli {

namespace {

struct TrainOptions {
  RunRequest request;
  std::vector<std::string> data, validation, variables, initializers, sampleAxes, lossSettings, settings;
  std::string loss = "softmax-cross-entropy", lossOutput, optimizer = "adam", schedule = "constant", checkpoint, output,
              module;
  int64_t epochs = 1, batch = 32, accumulate = 1, patience = 0, checkpointEvery = 0;
  uint64_t seed = 0;
  std::optional<double> batchNormMomentum;
  double rate = 1e-3, clipNorm = 0, clipValue = 0, minDelta = 0;
  bool inOrder = false, dropLast = false, keepBest = false, resume = false, quiet = false, json = false;
};

constexpr std::string_view kTarget = "target";

Error usage(std::string message, std::string hint = {}) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

Result<GivenSettings> parseSettings(const std::vector<std::string>& words, std::string_view option) {
  GivenSettings settings;
  for (const std::string& word : words) {
    AGLOW_TRY(const auto pair, splitAtEquals(word, option));
    double value = 0;
    const char* end = pair.second.data() + pair.second.size();
    const auto [last, fault] = std::from_chars(pair.second.data(), end, value);
    if (fault != std::errc() || last != end || !std::isfinite(value))
      return usage(fmt::format("{} '{}': expected a number", option, word));
    settings[pair.first] = value;
  }
  return settings;
}

// Files by the names of inputs, and that of the target: NAME=FILE.npy, or one FILE.npz with arrays of these names.
Result<std::map<std::string, std::string>> filesOf(const std::vector<std::string>& words, const TrainingModule& module,
                                                   std::string_view option) {
  std::map<std::string, std::string> files;
  for (const std::string& word : words) {
    if (!word.ends_with(".npz") || word.find('=') != std::string::npos) {
      AGLOW_TRY(const auto pair, splitAtEquals(word, option));
      files[pair.first] = pair.second;
      continue;
    }
    AGLOW_TRY(const std::vector<std::string> names, npzNames(word));
    for (const std::string& name : names) {
      const bool known = name == kTarget || std::any_of(module.inputs.begin(), module.inputs.end(),
                                                        [&](const SampleInput& input) { return input.name == name; });
      if (known) files[name] = fmt::format("{}:{}", word, name);
    }
  }
  return files;
}

// An array of the kind that the file itself has.
Result<Tensor> readArray(const std::string& path) {
  AGLOW_TRY(const NpyHeader header, readNpyHeader(path));
  if (const std::optional<ElemKind> kind = elemKindByNpy(header.descr)) return readNpy(path, *kind);
  return Error{
      .code = Code::BadNpy, .message = fmt::format("arrays of type {} are not supported", header.descr), .where = path};
}

Result<Dataset> readData(const std::vector<std::string>& words, const TrainingModule& module, std::string_view option) {
  AGLOW_TRY(auto files, filesOf(words, module, option));
  Dataset data;
  const auto target = files.find(std::string(kTarget));
  if (target == files.end())
    return usage(fmt::format("{} names no targets", option), fmt::format("{} {}=FILE.npy", option, kTarget));
  AGLOW_TRY(data.target, readArray(target->second));
  files.erase(target);
  for (const auto& [name, path] : files) {
    const auto input = std::find_if(module.inputs.begin(), module.inputs.end(),
                                    [&](const SampleInput& one) { return one.name == name; });
    // A name that the model does not have is told with the others.
    AGLOW_TRY(data.inputs[name], readNpy(path, input == module.inputs.end() ? ElemKind::Float32 : input->type.kind()));
  }
  return data;
}

Result<TrainingPlan> planOf(const TrainOptions& train, const ParsedOptions& options, const TrainingSource& source) {
  TrainingPlan plan;
  plan.loss = {.name = train.loss, .output = train.lossOutput};
  AGLOW_TRY(plan.loss.settings, parseSettings(train.lossSettings, "--loss-setting"));
  plan.optimizer = train.optimizer;
  AGLOW_TRY(plan.settings, parseSettings(train.settings, "--setting"));
  plan.clipNorm = train.clipNorm;
  plan.clipValue = train.clipValue;
  plan.batchNormMomentum = train.batchNormMomentum;
  if (!train.variables.empty()) plan.variables = train.variables;
  if (train.request.model.functions.size() > 1) return usage("--function: one function is trained");
  if (!train.request.model.functions.empty()) plan.function = train.request.model.functions.front();
  for (const std::string& word : train.initializers) {
    const size_t at = word.find('=');
    if (at == std::string::npos || at == 0)
      return usage(fmt::format("--initialize '{}' is not of the form NAME=INITIALIZER", word));
    AGLOW_TRY(Initializer how, parseInitializer(word.substr(at + 1)));
    plan.initializers.emplace_back(word.substr(0, at), std::move(how));
  }
  for (const std::string& word : train.sampleAxes) {
    AGLOW_TRY(const auto pair, splitAtEquals(word, "--sample-axis"));
    int64_t axis = 0;
    const char* end = pair.second.data() + pair.second.size();
    const auto [last, fault] = std::from_chars(pair.second.data(), end, axis);
    if (fault != std::errc() || last != end)
      return usage(fmt::format("--sample-axis '{}': expected the number of an axis", word));
    plan.sampleAxes[pair.first] = axis;
  }
  plan.batch = train.batch;
  plan.accumulate = train.accumulate;
  plan.import = options.import;
  std::vector<std::string> fixed = train.request.inputs;
  fixed.insert(fixed.end(), train.request.model.values.begin(), train.request.model.values.end());
  if (!source.model) {
    for (const std::string& word : fixed) {
      AGLOW_TRY(const auto pair, splitAtEquals(word, "--input"));
      AGLOW_TRY(plan.fixed[pair.first], readArray(pair.second));
    }
    return plan;
  }
  AGLOW_TRY(const auto values, readInputs(source.model->graph, fixed, "--input"));
  for (const auto& [name, value] : values) {
    if (!value.isTensor()) return usage(fmt::format("--input {}: expected a tensor", name));
    plan.fixed[name] = value.tensor();
  }
  return plan;
}

// A line that grows on a screen; nothing where stderr is none.
class Bar {
public:
  explicit Bar(bool quiet) : shown_(!quiet && ::isatty(STDERR_FILENO) == 1) {}
  ~Bar() { clear(); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  void show(const TrainingReport& report) {
    if (!shown_) return;
    winsize size{};
    const int width = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    std::cerr << '\r' << progressLine(report, width) << "\033[K" << std::flush;
  }
  void clear() const {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
  }

private:
  bool shown_;
};

nlohmann::ordered_json jsonOf(const TrainingReport& report) {
  nlohmann::ordered_json epoch = {
      {"epoch", report.epoch}, {"loss", report.loss}, {"samples_per_second", report.samplesPerSecond}};
  if (report.validationLoss) epoch["validation_loss"] = *report.validationLoss;
  if (report.accuracy) epoch["accuracy"] = *report.accuracy;
  return epoch;
}

Diagnosed<Unit> fit(Trainer& trainer, const TrainOptions& train, const RateSchedule& schedule) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  auto data = readData(train.data, trainer.module(), "--data");
  if (!data.ok()) return failed(data);
  Dataset validation;
  if (!train.validation.empty()) {
    auto read = readData(train.validation, trainer.module(), "--validation");
    if (!read.ok()) return failed(read);
    validation = *std::move(read);
  }
  Bar bar(train.quiet);
  FitOptions options{.epochs = train.epochs,
                     .rate = train.rate,
                     .schedule = schedule,
                     .shuffle = !train.inOrder,
                     .dropLast = train.dropLast,
                     .validation = train.validation.empty() ? nullptr : &validation,
                     .patience = train.patience,
                     .minDelta = train.minDelta,
                     .restoreBest = train.keepBest,
                     .checkpoint = train.checkpoint,
                     .checkpointEvery = train.checkpointEvery,
                     .resume = train.resume};
  options.report = [&](const TrainingReport& report) -> Diagnosed<bool> {
    if (!report.ofEpoch) {
      bar.show(report);
      return false;
    }
    bar.clear();
    if (train.quiet || train.json) return false;
    if (const Status printed = printOut(epochLine(report) + "\n"); !printed.ok()) return printed.error();
    return false;
  };
  auto result = trainer.fit(*data, options);
  if (!result.ok()) return result.diagnostics();
  Status written;
  if (!train.output.empty()) written = trainer.exportModel(train.output);
  if (!written.ok()) return failed(written);
  if (!train.json) return Unit{};
  nlohmann::ordered_json json = {{"epochs", result->epochs},
                                 {"steps", result->steps},
                                 {"stopped_early", result->stoppedEarly},
                                 {"seconds", result->seconds},
                                 {"samples_per_second", result->samplesPerSecond},
                                 {"history", nlohmann::ordered_json::array()}};
  for (const TrainingReport& epoch : result->history) json["history"].push_back(jsonOf(epoch));
  if (const Status printed = printOut(json.dump(2) + "\n"); !printed.ok()) return failed(printed);
  return Unit{};
}

Diagnosed<Unit> execute(const TrainOptions& train) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  const ModelOptions& model = train.request.model;
  if (!model.stopAfter.empty() || !model.startFrom.empty())
    return usage("a model is trained whole, without --stop-after or --start-from");
  if (model.precision != "float" && model.precision != "bf16")
    return usage(fmt::format("--precision {}: a model is trained in float or bf16", model.precision));
  if (train.data.empty() && train.module.empty())
    return usage("there is nothing to learn from", "name arrays with --data, or write the functions with --module");
  auto schedule = RateSchedule::parse(train.schedule);
  if (!schedule.ok()) return failed(schedule);
  auto source = readSource(model.model, model.init);
  if (!source.ok()) return failed(source);
  if (model.followLinks && source->model && source->model->external) source->model->external->followLinks();
  auto options = train.request.parse();
  if (!options.ok()) return failed(options);
  auto plan = planOf(train, *options, *source);
  if (!plan.ok()) return failed(plan);
  auto backend = backendOptions(train.request);
  if (!backend.ok()) return failed(backend);
  auto trainer = Trainer::open(*std::move(source), *std::move(plan), options->compile, *backend, train.seed);
  if (!trainer.ok()) return trainer.diagnostics();
  if (!train.data.empty())
    if (auto done = fit(**trainer, train, *schedule); !done.ok()) return done;
  if (train.module.empty()) return Unit{};
  if (const Status written = (*trainer)->exportModule(train.module); !written.ok()) return failed(written);
  return Unit{};
}

template <class Rows>
std::string listed(std::string_view front, const Rows& rows) {
  std::string text(front);
  for (const auto& row : rows) text += fmt::format("{}{}", &row == &rows.front() ? "" : ", ", row.name);
  return text;
}

}  // namespace

Command trainCommand() {
  auto options = std::make_shared<TrainOptions>();
  static const std::string kLosses = listed("What is to become less: ", losses());
  static const std::string kOptimizers = listed("How weights change: ", optimizers());
  static const std::string kInitializers =
      listed("First values instead of the model's, for names or patterns of what is trained: a FILE.npy, or ",
             initializers()) +
      ", as in 'head.*=he:gain=0.5'";
  static const std::string kSchedules =
      listed("How the rate changes, with ,warmup=STEPS if it shall grow at first: ", schedules());
  Command command{
      .name = "train",
      .doc = "Train a model, or some of its weights, and write it with the new ones",
      .options = options->request.options(),
      .footer =
          "Arrays have a sample in each row; --input gives what is the same for all samples. The same seed and data "
          "give "
          "the same weights, whether or not a training was interrupted.\n\n"
          "Examples:\n  aglow train digits.onnx --data image=x.npy --data target=y.npy --epochs 10 -o trained.onnx\n"
          "  aglow train model.onnx --data all.npz --train 'head.*' --checkpoint run.ckpt --resume -o tuned.onnx\n"
          "  aglow train model.onnx --module steps.graph && aglow compile steps.graph --emit bundle -o out",
      .action = [options] { return finish(execute(*options)); }};
  addTo(
      command.options,
      {{"--data", &options->data, "Samples of an input, or with NAME target what is wanted; or arrays of these names",
        "NAME=FILE.npy|FILE.npz"},
       {"--validation", &options->validation, "The same, to measure after each epoch", "NAME=FILE.npy|FILE.npz"},
       {.names = "--train",
        .place = &options->variables,
        .doc = "What is trained: names of initializers, or patterns with * and ?; ! before it: not that (default: all)",
        .type = "NAME,…",
        .commas = true},
       {"--initialize", &options->initializers, kInitializers, "NAME=INITIALIZER"},
       {.names = "--loss", .place = &options->loss, .doc = kLosses, .type = "NAME", .showDefault = true},
       {"--loss-output", &options->lossOutput, "The output that is compared with the target (default: the first)",
        "NAME"},
       {"--loss-setting", &options->lossSettings, "A number that the loss takes", "NAME=VALUE"},
       {.names = "--optimizer", .place = &options->optimizer, .doc = kOptimizers, .type = "NAME", .showDefault = true},
       {"--setting", &options->settings, "A number that the optimizer takes, e.g. decay=0.01", "NAME=VALUE"},
       {.names = "--rate", .place = &options->rate, .doc = "How far a step goes", .showDefault = true},
       {.names = "--schedule", .place = &options->schedule, .doc = kSchedules, .type = "NAME", .showDefault = true},
       {.names = "--epochs", .place = &options->epochs, .doc = "How often each sample is seen", .showDefault = true},
       {.names = "--batch", .place = &options->batch, .doc = "Samples of a step", .showDefault = true},
       {"--sample-axis", &options->sampleAxes,
        "The axis of an input, or of the output, along which the model has its samples, if not the first; arrays have "
        "them in rows all the same",
        "NAME=AXIS"},
       {.names = "--accumulate",
        .place = &options->accumulate,
        .doc = "Runs that a step is cut into, to save memory",
        .showDefault = true},
       {"--clip-norm", &options->clipNorm, "Holds the norm of all gradients together below this"},
       {"--clip-value", &options->clipValue, "Holds each element of a gradient between -X and X"},
       {"--batch-norm-momentum", &options->batchNormMomentum,
        "Batch norms use their batch's statistics, and running ones keep this share of themselves (default: fixed)",
        "X"},
       {.names = "--seed", .place = &options->seed, .doc = "What random numbers follow from", .showDefault = true},
       {"--in-order", &options->inOrder, "Takes samples in their order in each epoch"},
       {"--drop-last", &options->dropLast, "Leaves out the last batch of an epoch where it is not full"},
       {"--patience", &options->patience, "Stops after so many epochs without a better validation loss", "EPOCHS"},
       {"--min-delta", &options->minDelta, "By how much a validation loss has to be better"},
       {"--keep-best", &options->keepBest, "Ends with the weights of the best validation loss"},
       {"--checkpoint", &options->checkpoint, "Where the training is kept after each epoch", "FILE"},
       {"--checkpoint-every", &options->checkpointEvery, "After so many steps as well", "STEPS"},
       {"--resume", &options->resume, "Goes on from the checkpoint, if there is one"},
       {"--module", &options->module,
        "Writes the functions of the training as a text form, with the weights as they are in the end", "FILE.graph"},
       {"-o,--output", &options->output, "The model with its new weights", "FILE.onnx"},
       {"--json", &options->json, "One JSON document instead of lines"},
       {"--quiet,-q", &options->quiet, "Says nothing"}});
  return command;
}

}  // namespace aglow::cli
