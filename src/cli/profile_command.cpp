// aglow profile: runs a model on samples and writes what they tell of its values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/samples.h"
#include "compile/packages.h"
#include "dynamic/quant_report.h"
#include "quant/profile_file.h"

namespace aglow::cli {

namespace {

struct ProfileOptions {
  RunRequest request;
  std::string data, output, reach = fmt::format("{}dB", ProfileGoal::kDecibels);
  std::vector<std::string> merge;
  bool json = false;
};

constexpr std::string_view kNoGoal = "none";

// What the samples say of the model in integers, and of the layers that the profile keeps out of them.
std::string textOf(const quant::Report::Found& found) {
  const double decibels = found.outcome.decibels();
  std::string text = std::isfinite(decibels) ? fmt::format("in integers: {:.1f} dB", decibels) : "in integers: exact";
  if (found.outcome.rows > 0) text += fmt::format(", {} of {} first places", found.outcome.same, found.outcome.rows);
  text += '\n';
  if (found.keep.empty()) return text;
  return text + fmt::format("to reach {} these layers stay in floats: {}\n", found.goal, fmt::join(found.keep, ", "));
}

Diagnosed<Unit> execute(const ProfileOptions& profile) {
  const auto failed = [](const auto& result) { return Diagnostics(result.error()); };
  const ModelOptions& model = profile.request.model;
  if (isPackage(model.model))
    return Error{.code = Code::Usage, .message = "a package is compiled: profile the model that it was made from"};
  if (!model.stopAfter.empty() || !model.startFrom.empty() || model.precision != "float")
    return Error{.code = Code::Usage,
                 .message =
                     "a model is profiled whole and in floats, without --stop-after, --start-from or "
                     "--precision"};
  std::optional<double> goal;
  if (profile.reach != kNoGoal) {
    auto decibels = decibelsOf(profile.reach);
    if (!decibels.ok()) return failed(decibels);
    goal = *decibels;
  }
  auto options = profile.request.parse();
  if (!options.ok()) return failed(options);
  auto backend = backendOptions(profile.request);
  if (!backend.ok()) return failed(backend);
  auto file = openModel(model);
  if (!file.ok()) return failed(file);
  quant::Profile all;
  for (const std::string& path : profile.merge) {
    auto more = quant::readProfile(path);
    if (!more.ok()) return failed(more);
    if (Status added = all.add(*more); !added.ok()) return Diagnostics(added.error()).at(path);
  }
  Profiler profiler(compilerOf(*file), options->compile, options->import, *backend);
  auto done =
      forEachSample(*file, *options, profile.data, [&](const ModelValues& values) { return profiler.add(values); });
  if (!done.ok()) return done;
  auto told = profiler.profile();
  if (!told.ok()) return failed(told);
  if (Status added = all.add(*told); !added.ok()) return failed(added);
  std::string outcome;
  nlohmann::ordered_json json = {{"profile", profile.output}, {"values", all.values.size()}, {"samples", all.samples}};
  if (goal) {
    ReportRequest asked{.compile = compilerOf(*file), .options = options->compile, .import = options->import};
    asked.backend = *backend;
    asked.samples = [&](const ReportRequest::UseSample& use) {
      return forEachSample(*file, *options, profile.data, use, ProfileGoal::kSamples);
    };
    auto found = keepWhatMatters(all, std::move(asked), *goal);
    if (!found.ok()) return found.diagnostics();
    outcome = textOf(*found);
    const double decibels = found->outcome.decibels();
    json["sqnr_db"] = std::isfinite(decibels) ? nlohmann::ordered_json(decibels) : nlohmann::ordered_json();
    json["rows"] = found->outcome.rows;
    json["same_argmax"] = found->outcome.same;
    json["keep_float"] = found->keep;
  }
  if (Status written = quant::writeProfile(profile.output, all); !written.ok()) return failed(written);
  const Status printed = profile.json ? printJson(json)
                                      : printOut(fmt::format("{}: {} values of {} samples\n{}", profile.output,
                                                             all.values.size(), all.samples, outcome));
  if (!printed.ok()) return failed(printed);
  return Unit{};
}

}  // namespace

Command profileCommand() {
  auto options = std::make_shared<ProfileOptions>();
  Command command{
      .name = "profile",
      .doc = "Run a model on samples and write the ranges of its values, for --precision int8",
      .options = options->request.options(),
      .footer =
          "The folder has a .npy file for each sample, or, where the model has several inputs, a folder "
          "for each sample "
          "with a file INPUT.npy for each of them; or a .npz file for each sample, with an array for each input.\n\n"
          "Examples:\n  aglow profile digits.onnx --data images -o digits.json\n"
          "  aglow run digits.onnx --precision int8 --profile digits.json --input image=three.npy",
      .action = [options] { return finish(execute(*options)); }};
  addTo(command.options,
        {{.names = "--data", .place = &options->data, .doc = "Folder of samples", .type = "DIR", .required = true},
         {.names = "--output,-o", .place = &options->output, .doc = "The profile", .type = "FILE", .required = true},
         {.names = "--reach",
          .place = &options->reach,
          .doc = "What the first samples are to show in integers; layers that stand in the way stay in floats. none: "
                 "all become integers",
          .type = "DB",
          .showDefault = true},
         {"--merge", &options->merge, "Add what earlier runs found out", "FILE"},
         {"--json", &options->json, "Output for programs"}});
  return command;
}

}  // namespace aglow::cli
