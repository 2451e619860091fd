#include "quant/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace aglow::quant {

void Noise::add(const Tensor& exact, const Tensor& rounded) {
  const std::vector<double> one = exact.doubles(), other = rounded.doubles();
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    if (!std::isfinite(one[i]) || !std::isfinite(other[i])) continue;
    signal += one[i] * one[i];
    noise += (one[i] - other[i]) * (one[i] - other[i]);
  }
}

double Noise::decibels() const {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

double Outcome::decibels() const {
  double least = std::numeric_limits<double>::infinity();
  for (const Noise& output : outputs) least = std::min(least, output.decibels());
  return least;
}

namespace {

using nlohmann::ordered_json;

// ---------------------------------------------------------------- text

std::string decibelText(double decibels) { return std::isfinite(decibels) ? fmt::format("{:.1f}", decibels) : "exact"; }

std::string metricColumn(const Report& report, const std::optional<double>& metric) {
  return report.metric.empty() ? "" : fmt::format("{:>10}  ", metric ? fmt::format("{:.4f}", *metric) : "");
}

std::string outcomeText(const Report& report, const Outcome& outcome) {
  std::string text;
  for (const Noise& output : outcome.outputs)
    text += fmt::format("{:>10}  {}\n", decibelText(output.decibels()), output.name);
  if (outcome.rows > 0)
    text += fmt::format("{:>10}  rows of {} with the same first place\n",
                        fmt::format("{} of {}", outcome.same, outcome.rows), outcome.outputs.front().name);
  if (outcome.metric)
    text += fmt::format("{:>10.4f}  {}, {:.4f} in floats\n", *outcome.metric, report.metric, *report.floatMetric);
  return text;
}

// ---------------------------------------------------------------- JSON

ordered_json finite(double decibels) {
  return std::isfinite(decibels) ? ordered_json(decibels) : ordered_json(nullptr);
}

ordered_json jsonOf(const Outcome& outcome) {
  ordered_json outputs = ordered_json::array();
  for (const Noise& output : outcome.outputs)
    outputs.push_back({{"name", output.name}, {"sqnr_db", finite(output.decibels())}});
  ordered_json json{{"outputs", std::move(outputs)}};
  if (outcome.rows > 0) {
    json["rows"] = outcome.rows;
    json["same_argmax"] = outcome.same;
  }
  if (outcome.metric) json["metric"] = *outcome.metric;
  return json;
}

}  // namespace

std::string textOf(const Report& report) {
  std::string text =
      fmt::format("signal to noise over {} samples, in dB\n{}", report.samples, outcomeText(report, report.integers));
  for (const GainReport& gain : report.gains)
    text += fmt::format("{:>10}  without {}\n", decibelText(gain.without.decibels()), gain.name);
  if (!report.layers.empty()) {
    text += fmt::format("\nlayers, each alone in integers: outputs{}; what matters most first\n",
                        report.metric.empty() ? "" : ", " + report.metric);
    for (const LayerReport& layer : report.layers)
      text += fmt::format("{:>10}  {}{} ({})\n", decibelText(layer.alone.decibels()),
                          metricColumn(report, layer.alone.metric), layer.name, layer.op);
  }
  text += "\nvalues, the noisiest first\n";
  for (const ValueReport& value : report.values)
    text += fmt::format("{:>10}  {}\n", decibelText(value.noise.decibels()), value.noise.name);
  if (!report.vetoed.empty()) text += "\nin floats, and why\n";
  for (const Vetoed& layer : report.vetoed) text += fmt::format("  {} ({}): {}\n", layer.name, layer.op, layer.reason);
  if (!report.found) return text;
  const Report::Found& found = *report.found;
  text += fmt::format("\nto reach {}\n", found.goal);
  if (found.keep.empty()) return text + "  nothing has to stay in floats\n";
  return text + fmt::format("  --keep-float {}\n{}", fmt::join(found.keep, ","), outcomeText(report, found.outcome));
}

std::string jsonOf(const Report& report) {
  ordered_json json{{"samples", report.samples}};
  json.update(jsonOf(report.integers));
  if (!report.metric.empty()) json["metric_name"] = report.metric;
  if (report.floatMetric) json["float_metric"] = *report.floatMetric;
  json["gains"] = ordered_json::array();
  for (const GainReport& gain : report.gains) {
    ordered_json row{{"name", gain.name}, {"sqnr_db_without", finite(gain.without.decibels())}};
    json["gains"].push_back(std::move(row));
  }
  json["layers"] = ordered_json::array();
  for (const LayerReport& layer : report.layers) {
    ordered_json row{{"name", layer.name}, {"op", layer.op}, {"sqnr_db", finite(layer.alone.decibels())}};
    row.update(jsonOf(layer.alone));
    json["layers"].push_back(std::move(row));
  }
  json["values"] = ordered_json::array();
  for (const ValueReport& value : report.values) {
    ordered_json row{{"name", value.noise.name}, {"sqnr_db", finite(value.noise.decibels())}};
    if (value.parameters) {
      row["kind"] = elemName(value.parameters->kind);
      row["scale"] = value.parameters->scale;
      row["offset"] = value.parameters->offset;
    }
    json["values"].push_back(std::move(row));
  }
  json["in_floats"] = ordered_json::array();
  for (const Vetoed& layer : report.vetoed)
    json["in_floats"].push_back({{"name", layer.name}, {"op", layer.op}, {"reason", layer.reason}});
  if (report.found) {
    json["reach"] = {{"goal", report.found->goal}, {"keep_float", report.found->keep}};
    json["reach"].update(jsonOf(report.found->outcome));
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace aglow::quant
