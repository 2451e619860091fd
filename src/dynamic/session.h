// A model ready to be run on whatever sizes come: parts of it are compiled when they are first needed, and kept. Runs
// of several threads go side by side.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "dynamic/graph_runner.h"
#include "graph/model_value.h"
#include "runtime/prepared_sizes.h"
#include "support/fork.h"
#include "support/turnstile.h"

namespace aglow {

struct SessionOptions {
  onnx::ImportOptions import;  // shapes, dims: sizes that inputs have to have; given: inputs that are always the same
  CompileOptions compile;
  BackendOptions backend;
  size_t maxParts = 256;  // compiled parts that are kept
  // Sizes of symbolic dimensions, largest last: the model is compiled for each when it is opened.
  std::map<std::string, std::vector<int64_t>> prepared;
  // Whether inputs are padded with zeros to the next prepared sizes, and outputs cut back.
  bool pad = false;
  std::function<void(const Compilation&)> compiled;  // called with every part that was compiled
};

class Session {
public:
  // Compiles what it can: a model with open sizes is compiled when the first inputs come, unless sizes are prepared.
  static Diagnosed<std::unique_ptr<Session>> open(onnx::Model model, SessionOptions options);

  const onnx::Graph& graph() const { return context_.model.graph; }
  // Inputs by name; those with an initializer may be left out. Gives the outputs in the model's order. Busy
  // where as many runs are under way as there may be contexts, and as many callers wait as may.
  Diagnosed<std::vector<ModelValue>> run(const std::map<std::string, ModelValue>& inputs);
  // What runs the whole model for inputs of these types, whatever their values: compiled, where it is new. Null where a
  // run takes more than one network, or outputs are not what that network gives.
  Diagnosed<std::shared_ptr<Network>> whole(const std::map<std::string, ModelValue>& inputs);
  // A run of it in the caller's memory (Executable::run has the rules); as any other run it may be Busy.
  Status run(Network& whole, std::span<const TensorRef> inputs, std::span<const TensorRef> outputs);
  // Compiled parts that are kept now, and the bytes of their weights and runs.
  size_t parts() const { return context_.parts.size(); }
  int64_t bytes() const { return context_.bytes->weights + context_.bytes->runs; }

private:
  Session(onnx::Model model, SessionOptions options, PreparedSizes prepared);

  Diagnostics check(const std::map<std::string, ModelValue>& inputs) const;
  Diagnosed<onnx::KnownValues> knownOf(const std::map<std::string, ModelValue>& inputs);
  Diagnosed<Unit> prepare(const NamedSizes& dims);
  Diagnosed<std::vector<ModelValue>> runPadded(const std::map<std::string, ModelValue>& inputs);

  SessionOptions options_;
  PreparedSizes prepared_;
  RunnerContext context_;
  GraphRunner runner_;
  Turnstile turnstile_;  // whole runs; parts of them never wait for long, and are never refused
  WholeMutex mutex_;
  std::set<std::string> checked_;  // types of inputs that are known to fit the model
};

}  // namespace aglow
