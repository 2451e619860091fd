// Epochs of steps, and what is done between them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "grad/differentiate.h"
#include "lower/lower.h"
#include "support/quote.h"
#include "support/stopwatch.h"
#include "train/not_finite.h"
#include "train/trainer.h"

namespace aglow {

// Steps between copies of the state, from which a step that fails is found again.
constexpr int64_t kStepsToRepeat = 256;

class Fitting {
public:
  Fitting(Trainer& trainer, const FitOptions& options, CheckedData data)
      : t_(trainer), o_(options), data_(std::move(data)), batch_(trainer.plan_.batch) {
    steps_ = o_.dropLast ? data_.samples / batch_ : (data_.samples + batch_ - 1) / batch_;
  }

  Diagnosed<FitResult> run() {
    if (auto ready = begin(); !ready.ok()) return ready.error();
    bool stop = result_.stoppedEarly;
    while (!stop && position().epoch < last()) {
      auto stopped = epoch();
      if (!stopped.ok()) return stopped.diagnostics();
      stop = *stopped;
    }
    if (o_.restoreBest && !best_.empty())
      if (const Status restored = t_.restore(best_); !restored.ok()) return restored.error();
    result_.epochs = position().epoch;
    result_.steps = position().step;
    result_.seconds = watch_.seconds();
    result_.samplesPerSecond = result_.seconds > 0 ? static_cast<double>(samples_) / result_.seconds : 0;
    return std::move(result_);
  }

private:
  TrainingPosition& position() { return t_.position_; }
  int64_t last() { return position().firstEpoch + o_.epochs; }

  Status begin() {
    if (steps_ < 1)
      return Error{
          .code = Code::BadBinding,
          .message = fmt::format("{} samples are less than a batch of {}, and incomplete ones are to be dropped",
                                 data_.samples, batch_)};
    if ((o_.patience > 0 || o_.restoreBest) && o_.validation == nullptr)
      return Error{.code = Code::Usage, .message = "stopping early, and keeping the best, needs data for validation"};
    if (o_.resume && o_.checkpoint.empty())
      return Error{.code = Code::Usage, .message = "to go on needs the checkpoint where the training was left"};
    std::error_code fault;
    if (o_.resume && std::filesystem::exists(o_.checkpoint, fault)) return goOn();
    TrainingPosition& p = position();
    p.firstEpoch = p.epoch;
    p.firstStep = p.step;
    p.stepOfEpoch = 0;
    p.lossSum = 0;
    p.lossSamples = 0;
    p.best = std::numeric_limits<double>::infinity();
    p.bestEpoch = -1;
    return {};
  }

  Status goOn() {
    AGLOW_TRY(Checkpoint checkpoint, t_.checkedCheckpoint(o_.checkpoint));
    if (checkpoint.position.seed != position().seed)
      return Error{.code = Code::BadBinding,
                   .message = fmt::format("the checkpoint has seed {}, this training {}", checkpoint.position.seed,
                                          position().seed),
                   .where = o_.checkpoint};
    if (checkpoint.position.stepOfEpoch > steps_)
      return Error{.code = Code::BadBinding,
                   .message = fmt::format("the checkpoint is at step {} of an epoch, which has {} with this data",
                                          checkpoint.position.stepOfEpoch, steps_),
                   .where = o_.checkpoint};
    AGLOW_OK(t_.restore(checkpoint.state));
    position() = checkpoint.position;
    best_ = std::move(checkpoint.best);
    result_.stoppedEarly = hasLostPatience();
    return {};
  }

  Diagnosed<double> rate() {
    const int64_t step = position().step - position().firstStep;
    if (o_.rateOf) return o_.rateOf(step);
    return o_.rate * o_.schedule.factor(step, o_.epochs * steps_, steps_);
  }

  std::span<const int64_t> rowsOf(const std::vector<int64_t>& order, int64_t step) const {
    const auto from = static_cast<size_t>(step * batch_);
    return std::span(order).subspan(from, std::min(order.size() - from, static_cast<size_t>(batch_)));
  }

  // Whether to stop after it.
  Diagnosed<bool> epoch() {
    TrainingPosition& p = position();
    const std::vector<int64_t> order = orderOf(data_.samples, o_.shuffle, p.seed, p.epoch);
    const Stopwatch watch;
    const int64_t first = p.lossSamples;
    while (p.stepOfEpoch < steps_) {
      if (rates_.empty() || std::ssize(rates_) >= kStepsToRepeat) {
        auto saved = t_.saved();
        if (!saved.ok()) return saved.error();
        copied_ = *std::move(saved);
        copiedAt_ = p.stepOfEpoch;
        rates_.clear();
      }
      const auto rate = this->rate();
      if (!rate.ok()) return rate.diagnostics();
      rates_.push_back(*Diagnosed<double>(rate));
      const std::span<const int64_t> rows = rowsOf(order, p.stepOfEpoch);
      const auto loss = t_.step(data_, rows, rates_.back());
      if (!loss.ok()) return loss.error();
      if (!std::isfinite(*loss))
        return explain(order, fmt::format("the loss is {}", std::isnan(*loss) ? "NaN" : "infinite"));
      ++p.step;
      ++p.stepOfEpoch;
      p.lossSum += *loss * static_cast<double>(rows.size());
      p.lossSamples += static_cast<int64_t>(rows.size());
      samples_ += static_cast<int64_t>(rows.size());
      TrainingReport report{.epoch = p.epoch + 1 - p.firstEpoch,
                            .epochs = o_.epochs,
                            .step = p.stepOfEpoch,
                            .steps = steps_,
                            .loss = *loss,
                            .rate = rates_.back(),
                            .samplesPerSecond = static_cast<double>(p.lossSamples - first) / watch.seconds()};
      auto stop = tell(report);
      if (!stop.ok()) return stop;
      if (o_.checkpointEvery > 0 && p.step % o_.checkpointEvery == 0 && p.stepOfEpoch < steps_)
        if (const Status written = writeCheckpoint(); !written.ok()) return written.error();
      if (!*stop) continue;
      if (const Status written = writeCheckpoint(); !written.ok()) return written.error();
      return true;
    }
    // A last step may spoil what no loss has seen yet.
    for (const std::string& name : t_.module_.changed) {
      const auto value = t_.state(name);
      if (!value.ok()) return value.error();
      if (isFinite(*value)) continue;
      --p.stepOfEpoch;
      return explain(order, fmt::format("{} is not finite", aglow::quoted(name)));
    }
    rates_.clear();
    return endEpoch(static_cast<double>(p.lossSamples - first) / watch.seconds());
  }

  Diagnosed<bool> endEpoch(double samplesPerSecond) {
    TrainingPosition& p = position();
    TrainingReport report{.ofEpoch = true,
                          .epoch = p.epoch + 1 - p.firstEpoch,
                          .epochs = o_.epochs,
                          .step = steps_,
                          .steps = steps_,
                          .loss = p.lossSum / static_cast<double>(p.lossSamples),
                          .rate = 0,
                          .samplesPerSecond = samplesPerSecond};
    if (o_.validation != nullptr) {
      auto evaluated = t_.evaluate(*o_.validation);
      if (!evaluated.ok()) return evaluated.diagnostics();
      report.validationLoss = evaluated->loss;
      report.accuracy = evaluated->accuracy;
      if (evaluated->loss < p.best - o_.minDelta) {
        report.isBest = true;
        p.best = evaluated->loss;
        p.bestEpoch = p.epoch;
        if (const Status kept = o_.restoreBest ? keepBest() : Status(); !kept.ok()) return kept.error();
      }
    }
    result_.loss = report.loss;
    result_.history.push_back(report);
    ++p.epoch;
    p.stepOfEpoch = 0;
    p.lossSum = 0;
    p.lossSamples = 0;
    if (const Status written = writeCheckpoint(); !written.ok()) return written.error();
    auto stop = tell(report);
    if (!stop.ok()) return stop;
    result_.stoppedEarly = hasLostPatience();
    return *stop || result_.stoppedEarly;
  }

  bool hasLostPatience() {
    const TrainingPosition& p = position();
    return o_.patience > 0 && p.epoch > p.firstEpoch &&
           p.epoch - 1 - std::max(p.bestEpoch, p.firstEpoch - 1) >= o_.patience;
  }

  Status keepBest() {
    best_.clear();
    for (const std::string& name : t_.module_.changed) {
      AGLOW_TRY(best_[name], t_.state(name));
    }
    return {};
  }

  Diagnosed<bool> tell(const TrainingReport& report) { return o_.report ? o_.report(report) : Diagnosed<bool>(false); }

  Status writeCheckpoint() {
    if (o_.checkpoint.empty()) return {};
    AGLOW_TRY(Trainer::Saved saved, t_.saved());
    return aglow::writeCheckpoint(o_.checkpoint, {.model = t_.module_.model,
                                                  .settings = t_.module_.settings,
                                                  .position = position(),
                                                  .state = std::move(saved),
                                                  .best = best_});
  }

  // Repeats the steps since the last copy up to the one that made what is not finite, and computes that node by node.
  Diagnosed<bool> explain(const std::vector<int64_t>& order, const std::string& fault) {
    const std::string what = fmt::format("{} in step {} of epoch {}", fault, position().stepOfEpoch + 1,
                                         position().epoch + 1 - position().firstEpoch);
    const auto cause = findCause(order);
    return Error{.code = Code::RuntimeValue,
                 .message = !cause.ok()      ? fmt::format("{}; why is not known: {}", what, cause.error().message)
                            : cause->empty() ? what
                                             : fmt::format("{}: {}", what, *cause),
                 .where = {},
                 .hint = "a smaller rate, clipped gradients (--clip-norm), or other data may help"};
  }

  Result<std::string> findCause(const std::vector<int64_t>& order) {
    AGLOW_OK(t_.restore(copied_));
    Trainer::Saved before = copied_;
    for (size_t i = 0; i < rates_.size(); ++i) {
      const std::span<const int64_t> rows = rowsOf(order, copiedAt_ + static_cast<int64_t>(i));
      AGLOW_TRY(const double loss, t_.step(data_, rows, rates_[i]));
      AGLOW_TRY(Trainer::Saved after, t_.saved());
      const bool finite = std::isfinite(loss) && std::all_of(after.begin(), after.end(),
                                                             [](const auto& item) { return isFinite(item.second); });
      if (finite) {
        before = std::move(after);
        continue;
      }
      AGLOW_TRY(std::string cause, causeIn(rows, rates_[i], before));
      if (cause.empty() || i + 1 == rates_.size()) return cause;
      return fmt::format("{} ({} steps before)", cause, rates_.size() - 1 - i);
    }
    return std::string();
  }

  Result<std::string> causeIn(std::span<const int64_t> rows, double rate, const Trainer::Saved& before) {
    auto made = makeTrainingModule(t_.source_, t_.plan_);
    if (!made.ok()) return made.diagnostics().errors().front();
    Function& train = *made->module->findFunction(made->step.name);
    AGLOW_OK(differentiate(train, lowerRule));
    NamedTensors state(before.begin(), before.end());
    for (size_t from = 0; from < rows.size(); from += static_cast<size_t>(made->samples)) {
      const auto some = rows.subspan(from, std::min(rows.size() - from, static_cast<size_t>(made->samples)));
      NamedTensors bindings;
      for (const Placeholder* place : inputsOf(train)) {
        Tensor value(place->type());
        if (const auto it = data_.arrays.find(place->name()); it != data_.arrays.end()) {
          gatherRows(it->second, some, value);
        } else if (const auto fixed = made->fixed.find(place->name()); fixed != made->fixed.end()) {
          value = fixed->second;
        } else {
          const bool isRate = place->name() == "rate";
          std::vector<double> numbers(static_cast<size_t>(place->type().elements()), isRate ? rate : 0);
          if (!isRate) std::fill_n(numbers.begin(), some.size(), 1.0 / static_cast<double>(rows.size()));
          value = Tensor::fromDoubles(place->type(), numbers);
        }
        bindings[place->name()] = std::move(value);
      }
      AGLOW_TRY(std::string cause, firstNotFinite(train, made->step.loss, bindings, state));
      if (!cause.empty()) return cause;
      AGLOW_OK(evaluateFunction(train, bindings, &state));
    }
    if (!made->accumulates()) return std::string();
    const NamedTensors bindings{{"rate", Tensor::scalar(ElemKind::Float32, rate)}};
    return firstNotFinite(*made->module->findFunction(updateName(made->step)), {}, bindings, state);
  }

  Trainer& t_;
  const FitOptions& o_;
  CheckedData data_;
  int64_t batch_, steps_ = 0, samples_ = 0;
  Trainer::Saved best_;
  // The state at a step of this epoch, and the rates since then.
  Trainer::Saved copied_;
  int64_t copiedAt_ = 0;
  std::vector<double> rates_;
  Stopwatch watch_;
  FitResult result_;
};

Diagnosed<FitResult> Trainer::fit(const Dataset& data, const FitOptions& options) {
  const std::lock_guard lock(mutex_);
  if (options.epochs < 0 || options.patience < 0 || options.checkpointEvery < 0 || !std::isfinite(options.rate))
    return Error{.code = Code::Usage,
                 .message = "epochs, patience and steps between checkpoints are from 0 on, and the rate is finite"};
  auto checked = checkData(data, module_);
  if (!checked.ok()) return checked.error();
  if (options.validation != nullptr)
    if (const auto valid = checkData(*options.validation, module_); !valid.ok())
      return Error(valid.error()).at("data for validation");
  return Fitting(*this, options, *std::move(checked)).run();
}

// ---------------------------------------------------------------- reports

std::string progressLine(const TrainingReport& report, int width) {
  const std::string front = fmt::format("epoch {}/{} ", report.epoch, report.epochs);
  const std::string back = fmt::format(" {}/{} loss {:.4g} {:.0f} samples/s", report.step, report.steps, report.loss,
                                       report.samplesPerSecond);
  const int room = std::min(width - static_cast<int>(front.size() + back.size()) - 3, 40);
  if (room < 4) return (front + back).substr(0, static_cast<size_t>(std::max(width - 1, 0)));
  const auto done = static_cast<size_t>(report.step * room / std::max<int64_t>(report.steps, 1));
  std::string bar(done, '=');
  if (done < static_cast<size_t>(room)) bar += '>';
  bar.resize(static_cast<size_t>(room), ' ');
  return fmt::format("{}[{}]{}", front, bar, back);
}

std::string epochLine(const TrainingReport& report) {
  std::string line = fmt::format("epoch {}/{}: loss {:.6g}", report.epoch, report.epochs, report.loss);
  if (report.validationLoss) line += fmt::format(", validation loss {:.6g}", *report.validationLoss);
  if (report.accuracy) line += fmt::format(", accuracy {:.2f} %", *report.accuracy * 100);
  return line;
}

}  // namespace aglow
