// aglow quant-report: a model in integers beside the same in floats, value by value and layer by layer.
#include "dynamic/quant_report.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "cli/cli.h"
#include "cli/samples.h"
#include "quant/quantize.h"
#include "support/file.h"
#include "support/file_set.h"

namespace aglow::cli {

namespace {

struct ReportOptions {
  RunRequest request;
  std::string data, labels, reach, html;
  std::optional<double> drop;
  bool json = false, noLayers = false;
};

// A number in each line.
Result<std::vector<int64_t>> readLabels(const std::string& path) {
  AGLOW_TRY(const SharedBytes file, readFile(path));
  const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  std::vector<int64_t> labels;
  size_t line = 1;
  for (size_t from = 0; from < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', from), text.size());
    std::string_view word = text.substr(from, end - from);
    while (word.ends_with('\r') || word.ends_with(' ')) word.remove_suffix(1);
    from = end + 1;
    if (word.empty()) continue;
    const auto [stop, fault] = std::from_chars(word.data(), word.data() + word.size(), labels.emplace_back());
    if (fault != std::errc() || stop != word.data() + word.size())
      return Error{.code = Code::BadBinding,
                   .message = "expected the number of a class in each line",
                   .where = fmt::format("{}:{}", path, line)};
  }
  return labels;
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
  ReportRequest asked{.options = options->compile, .import = options->import, .backend = *backend};
  asked.layers = !report.noLayers;
  asked.drop = report.drop;
  if (!report.reach.empty()) {
    auto reach = decibelsOf(report.reach);
    if (!reach.ok()) return failed(reach);
    asked.reach = *reach;
  }
  if (!report.labels.empty()) {
    auto labels = readLabels(report.labels);
    if (!labels.ok()) return failed(labels);
    asked.metric = top1(*std::move(labels));
  } else if (report.drop) {
    return Error{.code = Code::Usage, .message = "--drop is of the share that --labels tells"};
  }
  auto file = openModel(model);
  if (!file.ok()) return failed(file);
  asked.compile = compilerOf(*file);
  asked.samples = [&](const ReportRequest::UseSample& use) { return forEachSample(*file, *options, report.data, use); };
  auto made = reportOn(asked);
  if (!made.ok()) return made.diagnostics();
  if (!report.html.empty()) {
    const std::string title = std::filesystem::path(model.model).filename().string();
    const std::string page = quant::htmlOf(*made, title);
    const Status written = writeFileAtomically(report.html, std::as_bytes(std::span(page)));
    if (!written.ok()) return failed(written);
  }
  const Status printed = printOut(report.json ? quant::jsonOf(*made) : quant::textOf(*made));
  if (!printed.ok()) return failed(printed);
  return Unit{};
}

}  // namespace

Command quantReportCommand() {
  auto options = std::make_shared<ReportOptions>();
  Command command{
      .name = "quant-report",
      .doc = "Compare a model in integers with the same in floats, value by value and layer by layer",
      .options = options->request.options(),
      .footer =
          "A value is compared as it is before it is rounded: what all operators before it have done to it. A layer is "
          "computed in integers while all others are in floats, and the outputs are compared. Samples are as for aglow "
          "profile.\n\n"
          "Examples:\n  aglow quant-report digits.onnx --profile digits.json --data images --html report.html\n"
          "  aglow quant-report digits.onnx --profile digits.json --data images --reach 50dB",
      .action = [options] { return finish(execute(*options)); }};
  addTo(command.options,
        {{.names = "--data", .place = &options->data, .doc = "Folder of samples", .type = "DIR", .required = true},
         {"--labels", &options->labels, "Right classes, in the order of the samples: a number a line", "FILE"},
         {"--reach", &options->reach, "Find layers to keep in floats until all outputs have this ratio: 30dB", "DB"},
         {"--drop", &options->drop, "The same until the share of right classes is at most so much less", "SHARE"},
         {"--no-layers", &options->noLayers, "Leave single layers aside; takes two runs of each sample"},
         {"--html", &options->html, "Write a page with all this and the histograms", "FILE"},
         {"--json", &options->json, "Output for programs"}});
  return command;
}

}  // namespace aglow::cli
