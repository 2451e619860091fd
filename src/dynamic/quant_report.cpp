#include "dynamic/quant_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "quant/quantize.h"

namespace aglow {

namespace {

using Sample = std::map<std::string, ModelValue>;
using Form = WatchedModel::Form;

// For each row of the last axis, where it is largest; nothing for images, and what has no rows to choose from.
std::vector<int64_t> largestPlaces(const Tensor& tensor) {
  const Type& type = tensor.type();
  const int64_t columns = type.rank() == 0 ? 1 : type.dim(type.rank() - 1);
  if (columns < 2 || type.rank() > 3) return {};
  const std::vector<double> numbers = tensor.doubles();
  std::vector<int64_t> places;
  for (auto row = numbers.begin(); row != numbers.end(); row += columns)
    places.push_back(std::max_element(row, row + columns) - row);
  return places;
}

const Tensor* firstTensor(const std::vector<ModelValue>& outputs) {
  return !outputs.empty() && outputs.front().isTensor() ? &outputs.front().tensor() : nullptr;
}

// One way to compute the model, against the outputs in floats.
class Measured {
public:
  Measured(const SampleOutputs& exact, const std::optional<Metric>& metric) : exact_(exact), metric_(metric) {}

  void add(const std::vector<ModelValue>& outputs) {
    const std::vector<ModelValue>& exact = exact_[number_++];
    outcome_.outputs.resize(exact.size());
    for (size_t i = 0; i < exact.size(); ++i) {
      outcome_.outputs[i].name = fmt::format("output {}", i);
      if (exact[i].isTensor() && outputs[i].isTensor()) outcome_.outputs[i].add(exact[i].tensor(), outputs[i].tensor());
    }
    if (const Tensor *one = firstTensor(exact), *other = firstTensor(outputs); one != nullptr && other != nullptr) {
      const std::vector<int64_t> expected = largestPlaces(*one), got = largestPlaces(*other);
      const auto rows = static_cast<ptrdiff_t>(std::min(expected.size(), got.size()));
      outcome_.rows += std::ssize(expected);
      outcome_.same += std::inner_product(got.begin(), got.begin() + rows, expected.begin(), int64_t{0}, std::plus<>(),
                                          [](int64_t a, int64_t b) { return a == b ? 1 : 0; });
    }
    if (metric_) kept_.push_back(outputs);
  }

  Diagnosed<quant::Outcome> outcome() {
    if (!metric_) return outcome_;
    auto value = metric_->of(kept_);
    if (!value.ok()) return value.diagnostics();
    outcome_.metric = *value;
    return outcome_;
  }

private:
  const SampleOutputs& exact_;
  const std::optional<Metric>& metric_;
  quant::Outcome outcome_;
  SampleOutputs kept_;
  size_t number_ = 0;
};

class Study {
public:
  explicit Study(const ReportRequest& request) : request_(request) {}

  Diagnosed<quant::Report> run() {
    if (auto done = compareWhole(); !done.ok()) return done.diagnostics();
    if (request_.layers)
      if (auto done = measureGains(); !done.ok()) return done.diagnostics();
    const bool search = request_.reach || request_.drop;
    if (request_.layers || search)
      if (auto done = compareLayers(); !done.ok()) return done.diagnostics();
    if (search)
      if (auto done = searchKept(); !done.ok()) return done.diagnostics();
    return std::move(report_);
  }

private:
  WatchedModel model(Form form, const CompileOptions& options) const {
    return {form, request_.compile, options, request_.import, request_.backend};
  }

  static std::vector<ModelValue> ownOutputs(const WatchedModel::Seen& seen) {
    return {seen.outputs.begin(), seen.outputs.begin() + static_cast<ptrdiff_t>(seen.own)};
  }

  // All values in floats beside those in integers; keeps the outputs.
  Diagnosed<Unit> compareWhole() {
    WatchedModel floats = model(Form::Floats, request_.options), integers = model(Form::Integers, request_.options);
    Measured measured(exact_, request_.metric);
    auto done = request_.samples([&](const Sample& sample) -> Diagnosed<Unit> {
      auto exact = floats.run(sample);
      if (!exact.ok()) return exact.diagnostics();
      auto rounded = integers.run(sample);
      if (!rounded.ok()) return rounded.diagnostics();
      if (report_.values.empty())
        for (const WatchedModel::Watched& value : rounded->values)
          report_.values.push_back({.noise = {.name = value.name}, .parameters = value.parameters, .seen = value.seen});
      if (report_.vetoed.empty()) report_.vetoed.assign(rounded->vetoed.begin(), rounded->vetoed.end());
      for (size_t i = 0; i < report_.values.size(); ++i)
        report_.values[i].noise.add(exact->value(i), rounded->value(i));
      exact_.push_back(ownOutputs(*exact));
      measured.add(ownOutputs(*rounded));
      return Unit{};
    });
    if (!done.ok()) return done;
    auto outcome = measured.outcome();
    if (!outcome.ok()) return outcome.diagnostics();
    report_.samples = std::ssize(exact_);
    report_.integers = *std::move(outcome);
    std::sort(report_.values.begin(), report_.values.end(), [](const auto& a, const auto& b) {
      return a.noise.decibels() != b.noise.decibels() ? a.noise.decibels() < b.noise.decibels()
                                                      : a.noise.name < b.noise.name;
    });
    if (!request_.metric) return Unit{};
    report_.metric = request_.metric->name;
    auto value = request_.metric->of(exact_);
    if (!value.ok()) return value.diagnostics();
    report_.floatMetric = *value;
    return Unit{};
  }

  // Layer after layer over all samples, so that the outputs of one layer alone are in memory.
  Diagnosed<Unit> compareLayers() {
    WatchedModel switched = model(Form::Switched, request_.options);
    for (size_t number = 0, count = 1; number < count; ++number) {
      Measured measured(exact_, request_.metric);
      quant::LayerReport layer;
      auto done = request_.samples([&](const Sample& sample) -> Diagnosed<Unit> {
        auto seen = switched.run(sample, [&](size_t i) { return i == number; });
        if (!seen.ok()) return seen.diagnostics();
        count = seen->values.size();
        if (count == 0) return Unit{};
        layer.name = seen->values[number].name;
        layer.op = seen->values[number].op;
        measured.add(ownOutputs(*seen));
        return Unit{};
      });
      if (!done.ok()) return done;
      if (count == 0) break;
      auto outcome = measured.outcome();
      if (!outcome.ok()) return outcome.diagnostics();
      layer.alone = *std::move(outcome);
      report_.layers.push_back(std::move(layer));
    }
    const bool byMetric = request_.drop.has_value();
    std::sort(report_.layers.begin(), report_.layers.end(), [&](const auto& a, const auto& b) {
      if (byMetric && a.alone.metric != b.alone.metric) return a.alone.metric < b.alone.metric;
      return a.alone.decibels() != b.alone.decibels() ? a.alone.decibels() < b.alone.decibels() : a.name < b.name;
    });
    return Unit{};
  }

  // The passes before quantization, each left out.
  Diagnosed<Unit> measureGains() {
    for (const std::string_view pass : {quant::kEqualize, quant::kCorrectBias}) {
      CompileOptions options = request_.options;
      if (!options.disabled.emplace(pass).second) continue;
      auto without = outcomeWith(options);
      if (!without.ok()) return without.diagnostics();
      report_.gains.push_back({std::string(pass), *std::move(without)});
    }
    return Unit{};
  }

  Diagnosed<quant::Outcome> outcomeKeeping(const std::vector<std::string>& kept) const {
    auto request = std::make_shared<quant::Request>(*request_.options.quantize);
    request->keepFloat.insert(kept.begin(), kept.end());
    CompileOptions options = request_.options;
    options.quantize = std::move(request);
    return outcomeWith(options);
  }

  Diagnosed<quant::Outcome> outcomeWith(const CompileOptions& options) const {
    WatchedModel integers = model(Form::Integers, options);
    Measured measured(exact_, request_.metric);
    auto done = request_.samples([&](const Sample& sample) -> Diagnosed<Unit> {
      auto rounded = integers.run(sample);
      if (!rounded.ok()) return rounded.diagnostics();
      measured.add(ownOutputs(*rounded));
      return Unit{};
    });
    if (!done.ok()) return done.diagnostics();
    return measured.outcome();
  }

  bool isReached(const quant::Outcome& outcome) const {
    if (request_.reach && outcome.decibels() < *request_.reach) return false;
    if (asksForPlaces() && static_cast<double>(outcome.same) < *request_.agree * static_cast<double>(outcome.rows))
      return false;
    return !request_.drop || *outcome.metric >= *report_.floatMetric - *request_.drop;
  }

  // The fewest of the layers that matter most; what is found was run.
  Diagnosed<Unit> searchKept() {
    quant::Report::Found found{.goal = goal(), .keep = {}, .outcome = report_.integers};
    if (!isReached(found.outcome)) {
      size_t tooFew = 0, enough = report_.layers.size();
      while (tooFew + 1 < enough || found.keep.size() != enough) {
        const size_t tried = tooFew + 1 < enough ? tooFew + (enough - tooFew) / 2 : enough;
        std::vector<std::string> kept;
        for (size_t i = 0; i < tried; ++i) kept.push_back(report_.layers[i].name);
        auto outcome = outcomeKeeping(kept);
        if (!outcome.ok()) return outcome.diagnostics();
        if (tried < report_.layers.size() && !isReached(*outcome)) {
          tooFew = tried;
          continue;
        }
        enough = tried;
        found.keep = std::move(kept);
        found.outcome = *std::move(outcome);
      }
    }
    report_.found = std::move(found);
    return Unit{};
  }

  // Rows of a matrix are chances of classes; those of other tensors may be anything.
  bool asksForPlaces() const {
    const Tensor* first = exact_.empty() ? nullptr : firstTensor(exact_.front());
    return request_.agree && report_.integers.rows > 0 && first != nullptr && first->type().rank() <= 2;
  }

  std::string goal() const {
    std::string text;
    if (request_.reach) text = fmt::format("{} dB", *request_.reach);
    if (asksForPlaces()) text += fmt::format(" and the same first places in {} % of rows", 100 * *request_.agree);
    if (request_.drop)
      text += fmt::format("{}a drop of {} by at most {}", text.empty() ? "" : " and ", report_.metric, *request_.drop);
    return text;
  }

  const ReportRequest& request_;
  quant::Report report_;
  SampleOutputs exact_;
};

}  // namespace

Metric top1(std::vector<int64_t> labels) {
  const auto of = [labels = std::move(labels)](const SampleOutputs& outputs) -> Diagnosed<double> {
    std::vector<int64_t> places;
    for (const std::vector<ModelValue>& one : outputs)
      if (const Tensor* tensor = firstTensor(one)) {
        const std::vector<int64_t> more = largestPlaces(*tensor);
        places.insert(places.end(), more.begin(), more.end());
      }
    if (places.size() != labels.size())
      return Error{.code = Code::BadBinding,
                   .message = fmt::format("there are {} labels, and {} rows of the first output over all samples",
                                          labels.size(), places.size())};
    int64_t right = 0;
    for (size_t i = 0; i < places.size(); ++i) right += places[i] == labels[i] ? 1 : 0;
    return static_cast<double>(right) / static_cast<double>(std::max<size_t>(labels.size(), 1));
  };
  return {.name = "top-1", .of = of};
}

Diagnosed<quant::Report> reportOn(const ReportRequest& request) {
  if (request.drop && !request.metric)
    return Error{.code = Code::Usage, .message = "a drop is one of a metric, and there is none"};
  return Study(request).run();
}

Diagnosed<quant::Report::Found> keepWhatMatters(quant::Profile& profile, ReportRequest request, double decibels) {
  auto quantize = std::make_shared<quant::Request>();
  quantize->profile = profile;
  request.options.quantize = std::move(quantize);
  request.layers = false;
  request.reach = decibels;
  request.agree = ProfileGoal::kAgree;
  auto report = reportOn(request);
  if (!report.ok()) return report.diagnostics();
  profile.keepFloat.insert(report->found->keep.begin(), report->found->keep.end());
  return *std::move(report->found);
}

}  // namespace aglow
