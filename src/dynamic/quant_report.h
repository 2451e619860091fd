// A model in floats beside the same in integers, whole and layer by layer, on samples that are run again and again.
#pragma once

#include "dynamic/profiling.h"
#include "quant/report.h"

namespace aglow {

// What a model gave for each sample.
using SampleOutputs = std::vector<std::vector<ModelValue>>;

// A number for how good a model's answers are, the larger the better.
struct Metric {
  std::string name;
  std::function<Diagnosed<double>(const SampleOutputs& outputs)> of;
};
// The share of rows of the first output that are largest at the place that the labels name, row by row.
Metric top1(std::vector<int64_t> labels);

struct ReportRequest {
  WatchedModel::CompileFor compile;
  CompileOptions options;  // ask for integers
  onnx::ImportOptions import;
  BackendOptions backend;
  // Calls what it is given with one sample after the other, the same ones each time.
  using UseSample = std::function<Diagnosed<Unit>(const std::map<std::string, ModelValue>& sample)>;
  std::function<Diagnosed<Unit>(const UseSample& use)> samples;
  std::optional<Metric> metric = {};
  bool layers = true;  // each alone, too
  // What is to be reached by keeping layers in floats: decibels for all outputs, or at most a drop of the metric.
  std::optional<double> reach = {}, drop = {};
  // Beside the decibels: the least share of rows of the first output, a matrix, that are largest at the same place.
  std::optional<double> agree = {};
};
Diagnosed<quant::Report> reportOn(const ReportRequest& request);

// What integers are to give without a word of the user's, judged by the first samples: the layers that stand in the way
// stay in floats.
struct ProfileGoal {
  static constexpr double kDecibels = 25, kAgree = 0.995;
  static constexpr size_t kSamples = 8;
};
// Notes in a profile which layers have to stay in floats to reach so many decibels, and the same first places. The
// request says how and on which samples; gives what was found.
Diagnosed<quant::Report::Found> keepWhatMatters(quant::Profile& profile, ReportRequest request, double decibels);

}  // namespace aglow
