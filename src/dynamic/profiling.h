// A model run on samples, with all values watched that quantization asks about.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "graph/model_value.h"
#include "import/onnx/importer.h"
#include "quant/profile.h"
#include "runtime/network.h"

namespace aglow {

// A model with outputs more: all values that quantization asks about, before they are rounded. Compiled once for the
// sizes that samples come with, in floats, or in integers as the options say.
class WatchedModel {
public:
  // The graph of the model for certain sizes, after the phase that the options say. A model that has its sizes leaves
  // those of the samples aside.
  using CompileFor = std::function<Diagnosed<Compilation>(const CompileOptions& options, const onnx::ImportOptions&)>;

  WatchedModel(CompileFor compile, CompileOptions options, onnx::ImportOptions import, BackendOptions backend);

  struct Seen {
    std::span<const std::string> names;  // of the values
    std::vector<ModelValue> outputs;     // those of the model, then the values
    uint64_t fingerprint = 0;            // of the graph
    size_t own = 0;                      // outputs of the model

    const Tensor& value(size_t i) const { return outputs[own + i].tensor(); }
  };
  // Runs one sample, inputs by name. BadBinding where one does not fit the model, or has values that are not finite;
  // UnsupportedFeature where the model has nothing to quantize.
  Diagnosed<Seen> run(const std::map<std::string, ModelValue>& sample);

private:
  // The model compiled for the sizes of some samples.
  struct Watching {
    std::unique_ptr<Network> network;
    std::vector<std::string> values;  // by output, after those of the model
    uint64_t fingerprint = 0;
    size_t outputs = 0;  // of the model
  };

  Diagnosed<Watching*> watchingFor(const std::map<std::string, ModelValue>& sample);
  Diagnosed<Watching> compileFor(const std::map<std::string, ModelValue>& sample) const;

  CompileFor compile_;
  CompileOptions options_;
  onnx::ImportOptions import_;
  BackendOptions backend_;
  std::map<std::string, Watching> watching_;  // by the types of the inputs
};

// What samples tell of a model's values.
class Profiler {
public:
  using CompileFor = WatchedModel::CompileFor;

  Profiler(CompileFor compile, CompileOptions options, onnx::ImportOptions import, BackendOptions backend);
  // A model file's; it lives as long as the profiler.
  Profiler(const onnx::Model& model, CompileOptions options, onnx::ImportOptions import, BackendOptions backend);
  Profiler(Profiler&&) = default;
  Profiler(const Profiler&) = delete;

  // Runs one sample, as WatchedModel::run has it.
  Diagnosed<Unit> add(const std::map<std::string, ModelValue>& sample);
  // What all samples so far have told.
  const quant::Profile& profile() const { return profile_; }

private:
  WatchedModel model_;
  int threads_;
  quant::Profile profile_;
};

// How far values in integers are from those in floats.
struct Noise {
  std::string name;
  double signal = 0, noise = 0;  // sums of squares

  void add(const Tensor& exact, const Tensor& rounded);
  // The ratio in decibels; infinite where nothing differs.
  double decibels() const;
};

// A model in floats beside the same in integers.
class QuantReport {
public:
  // The options ask for integers.
  QuantReport(const WatchedModel::CompileFor& compile, const CompileOptions& options, const onnx::ImportOptions& import,
              const BackendOptions& backend);

  Diagnosed<Unit> add(const std::map<std::string, ModelValue>& sample);
  // Of each value as it is before it is rounded, in the order of the graph: what all before it have done to it.
  const std::vector<Noise>& values() const { return values_; }
  // Of the model's outputs, by their numbers.
  const std::vector<Noise>& outputs() const { return outputs_; }
  int64_t samples() const { return samples_; }

private:
  WatchedModel exact_, rounded_;
  std::vector<Noise> values_, outputs_;
  int64_t samples_ = 0;
};

}  // namespace aglow
