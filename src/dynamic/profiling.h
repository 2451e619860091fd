// A model run on samples, with all values watched that quantization asks about.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "graph/model_value.h"
#include "import/onnx/importer.h"
#include "quant/profile.h"
#include "runtime/network.h"

namespace aglow {

class Profiler {
public:
  // The graph of the model for certain sizes, after the phase that the options say. A model that has its sizes leaves
  // those of the samples aside.
  using CompileFor = std::function<Diagnosed<Compilation>(const CompileOptions& options, const onnx::ImportOptions&)>;

  Profiler(CompileFor compile, CompileOptions options, onnx::ImportOptions import, BackendOptions backend);
  // A model file's; it lives as long as the profiler.
  Profiler(const onnx::Model& model, CompileOptions options, onnx::ImportOptions import, BackendOptions backend);

  Profiler(Profiler&&) = default;
  Profiler(const Profiler&) = delete;

  // Runs one sample, inputs by name. BadBinding where one does not fit the model, or has values that are not finite;
  // UnsupportedFeature where the model has nothing to quantize.
  Diagnosed<Unit> add(const std::map<std::string, ModelValue>& sample);
  // What all samples so far have told.
  const quant::Profile& profile() const { return profile_; }

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
  quant::Profile profile_;
};

}  // namespace aglow
