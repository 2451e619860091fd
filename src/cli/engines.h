// What computes the values of a model for `verify`: Aglow's backends, and onnxruntime in a process of its own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/run_request.h"
#include "graph/model_value.h"

namespace aglow::cli {

class Engine {
public:
  virtual ~Engine() = default;
  const std::string& name() const { return name_; }

  // The values under these names, of the graph's outputs or of any node in it.
  virtual Diagnosed<std::vector<ModelValue>> values(const std::vector<std::string>& names,
                                                    const ModelValues& inputs) = 0;
  // The same engine for another model, which outlives it; null where it takes models only as files.
  virtual std::unique_ptr<Engine> forModel(const onnx::Model&) const { return nullptr; }

protected:
  explicit Engine(std::string name) : name_(std::move(name)) {}

private:
  std::string name_;
};

// A backend by its name, maybe with an optimization level: "cpu", "cpu:O0". The model outlives the engine.
Result<std::unique_ptr<Engine>> backendEngine(const onnx::Model& model, const RunRequest& request,
                                              const std::string& backend);

// A package: its own code, or the reference backend on its programs. The graph has nothing but what it takes and gives.
Result<std::unique_ptr<Engine>> packageEngine(const RunRequest& request, const std::string& backend);
Result<onnx::Graph> packageGraph(const RunRequest& request);

// onnxruntime of the Python that AGLOW_PYTHON names, or python3; Usage error, with what to do, where it is missing.
Result<std::unique_ptr<Engine>> onnxruntimeEngine(const std::string& modelFile, const onnx::Model& model);

}  // namespace aglow::cli
