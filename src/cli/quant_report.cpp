// aglow quant-report: a model in integers beside the same in floats, value by value.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/samples.h"

namespace aglow::cli {

namespace {

struct ReportOptions {
  RunRequest request;
  std::string data;
  bool json = false;
};

// The noisiest first.
std::vector<Noise> ranked(std::vector<Noise> noises) {
  std::sort(noises.begin(), noises.end(), [](const Noise& a, const Noise& b) {
    return a.decibels() != b.decibels() ? a.decibels() < b.decibels() : a.name < b.name;
  });
  return noises;
}

nlohmann::ordered_json jsonOf(const std::vector<Noise>& noises) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Noise& noise : noises) {
    nlohmann::ordered_json row{{"name", noise.name}, {"sqnr_db", nullptr}};
    if (std::isfinite(noise.decibels())) row["sqnr_db"] = noise.decibels();
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string textOf(const std::vector<Noise>& noises) {
  std::string text;
  for (const Noise& noise : noises)
    text += std::isfinite(noise.decibels()) ? fmt::format("{:>10.1f}  {}\n", noise.decibels(), noise.name)
                                            : fmt::format("{:>10}  {}\n", "exact", noise.name);
  return text;
}

Diagnosed<Unit> execute(const ReportOptions& report) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  ModelOptions model = report.request.model;
  if (!model.stopAfter.empty() || !model.startFrom.empty())
    return Error{.code = Code::Usage,
                 .message = "quant-report takes a whole model, without --stop-after or --start-from"};
  model.precision = "int8";
  auto options = report.request.parse(model);
  if (!options.ok()) return failed(options);
  auto backend = backendOptions(report.request);
  if (!backend.ok()) return failed(backend);
  auto file = openModel(model);
  if (!file.ok()) return failed(file);
  QuantReport both(compilerOf(*file), options->compile, options->import, *backend);
  auto done = forEachSample(*file, *options, report.data, [&](const ModelValues& values) { return both.add(values); });
  if (!done.ok()) return done;
  const std::vector<Noise> values = ranked(both.values());
  const nlohmann::ordered_json json{
      {"samples", both.samples()}, {"outputs", jsonOf(both.outputs())}, {"values", jsonOf(values)}};
  const Status printed =
      printOut(report.json ? json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                           : fmt::format("signal to noise over {} samples, in dB\n{}\nvalues, the noisiest first\n{}",
                                         both.samples(), textOf(both.outputs()), textOf(values)));
  if (!printed.ok()) return failed(printed);
  return Unit{};
}

}  // namespace

Command quantReportCommand() {
  auto options = std::make_shared<ReportOptions>();
  Command command{
      .name = "quant-report",
      .doc = "Compare a model in integers with the same in floats, value by value",
      .options = options->request.options(),
      .footer =
          "A value is compared as it is before it is rounded: what all operators before it have done to it. "
          "Samples are as for aglow profile.\n\n"
          "Example:\n  aglow quant-report digits.onnx --profile digits.json --data images",
      .action = [options] { return finish(execute(*options)); }};
  addTo(command.options,
        {{.names = "--data", .place = &options->data, .doc = "Folder of samples", .type = "DIR", .required = true},
         {"--json", &options->json, "Output for programs"}});
  return command;
}

}  // namespace aglow::cli
