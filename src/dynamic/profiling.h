// A model run on samples, with all values watched that quantization asks about.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "graph/model_value.h"
#include "import/onnx/importer.h"
#include "quant/profile.h"
#include "quant/quantize.h"
#include "quant/schema.h"
#include "runtime/network.h"

namespace aglow {

// A model as it is looked at on samples, compiled once for the sizes that they come with. The options say how it
// becomes integers.
class WatchedModel {
public:
  enum class Form : uint8_t {
    Observed,  // in floats, with instructions that keep what runs tell of the values that quantization asks about
    Floats,    // with outputs more: these values
    Integers,  // the same, before values are rounded
    Switched,  // floats, with layers that runs switch to integers
  };
  // A value or a layer, by its name in the optimized graph.
  struct Watched {
    std::string name;
    std::string_view op = {};                          // of a layer
    int channelAxis = -1;                              // of a value
    std::string counts = {}, channels = {};            // of a value that is observed: its state
    std::optional<quant::Parameters> parameters = {};  // of a value that becomes integers
    quant::ValueProfile seen = {};                     // where integers are asked for: what is known of it
  };
  // The graph of the model for certain sizes, after the phase that the options say. A model that has its sizes leaves
  // those of the samples aside.
  using CompileFor = std::function<Diagnosed<Compilation>(const CompileOptions& options, const onnx::ImportOptions&)>;

  WatchedModel(Form form, CompileFor compile, CompileOptions options, onnx::ImportOptions import,
               BackendOptions backend);

  struct Seen {
    std::span<const Watched> values;        // or layers of a switched model
    std::span<const quant::Vetoed> vetoed;  // layers that the backend computes in floats
    std::vector<ModelValue> outputs;        // those of the model, then the values
    uint64_t fingerprint = 0;               // of the graph
    size_t own = 0;                         // outputs of the model

    const Tensor& value(size_t i) const { return outputs[own + i].tensor(); }
  };
  // Runs one sample, inputs by name. BadBinding where one does not fit the model, or has values that are not finite;
  // UnsupportedFeature where the model has nothing to quantize. Layers are switched to integers where `inIntegers` says
  // so of their numbers.
  Diagnosed<Seen> run(const std::map<std::string, ModelValue>& sample,
                      const std::function<bool(size_t layer)>& inIntegers = {});

  // What all runs so far of one graph have told, where values are observed.
  Result<quant::Profile> profile(uint64_t fingerprint);

private:
  // The model compiled for the sizes of some samples.
  struct Watching {
    std::unique_ptr<Network> network;
    std::vector<Watched> values;  // by output, after those of the model; or layers
    int64_t runs = 0;
    std::vector<quant::Vetoed> vetoed;
    std::string layersInput;  // of a switched model
    uint64_t fingerprint = 0;
    size_t outputs = 0;  // of the model
  };

  Diagnosed<Watching*> watchingFor(const std::map<std::string, ModelValue>& sample);
  Diagnosed<Watching> compileFor(const std::map<std::string, ModelValue>& sample) const;
  // Changes the optimized graph into the form.
  Status change(Function& function, Interface& interface, const Backend& backend, Watching& watching) const;

  Form form_;
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
  Result<quant::Profile> profile() {
    if (!fingerprint_) return quant::Profile();
    return model_.profile(*fingerprint_);
  }

private:
  WatchedModel model_;
  std::optional<uint64_t> fingerprint_;  // of the graph of the first sample
};

}  // namespace aglow
