// A model as Python sees it: read first, so that its inputs are known; then opened, and run by any number of threads.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/texts.h"
#include "dynamic/profiling.h"
#include "dynamic/session.h"
#include "runtime/network.h"
#include "support/file.h"
#include "support/fork.h"

namespace aglow::python {

// An input or output, as the model declares it.
struct Spec {
  std::string name;
  std::string type;  // "f32[batch,3]"
  std::string kind;  // "f32", "string"; "any" where the model does not say; "" where it is not supported
  std::string keys;  // of a map: "i64" or "string"; the kind is that of its values
  bool isSequence = false;
  bool isOptional = false;
  bool isRanked = true;
  bool hasDefault = false;
  std::vector<onnx::Dim> dims = {};
};

// A function with what it takes and gives. A model file has one, a text form or package may have several.
struct FunctionSpec {
  std::string name;
  std::vector<Spec> inputs, outputs;
};

using Inputs = std::map<std::string, ModelValue>;

class Model {
public:
  // A model file, or, by its ending, a text form or package. `initPath` names the net with the weights of a Caffe2 net,
  // or is empty.
  static Diagnosed<std::unique_ptr<Model>> read(const std::string& path, const std::string& initPath);
  // The same in memory, init net or null.
  static Diagnosed<std::unique_ptr<Model>> parse(const SharedBytes& file, const SharedBytes* init);
  // A graph, or programs, as text.
  static Diagnosed<std::unique_ptr<Model>> ofText(TextForm form);

  const std::vector<FunctionSpec>& functions() const { return functions_; }

  // Whether it is a package, for which phases have no meaning, and that needs no backend.
  bool isCompiled() const { return package_.has_value(); }
  // Compiles what it can; to be called once, before the model is run.
  Diagnosed<Unit> open(SessionOptions options);
  // Compiles the model for the sizes of samples; the model outlives it. Packages have none.
  Diagnosed<WatchedModel::CompileFor> compiler() const;
  // Runs samples and keeps what they tell; as the compiler has it.
  Diagnosed<std::unique_ptr<Profiler>> profiler(const SessionOptions& options) const;
  // The network that runs a function whole for inputs of these types, with its number there; null where a run takes
  // more than that.
  struct Whole {
    std::shared_ptr<Network> network;
    size_t function = 0;
  };
  Diagnosed<Whole> whole(const std::string& function, const Inputs& inputs);
  // A run of it in the caller's memory.
  Diagnosed<Unit> run(const Whole& whole, std::span<const TensorRef> inputs, std::span<const TensorRef> outputs);
  // The outputs of a function, in its order.
  Diagnosed<std::vector<ModelValue>> run(const std::string& function, const Inputs& inputs);
  // What the functions of a text form leave for the next run.
  std::vector<Spec> states() const;
  Diagnosed<ModelValue> state(const std::string& name);
  Diagnosed<Unit> setState(const std::string& name, const ModelValue& value);
  void resetState();
  // What was accepted of the model though it departs from the standard, since the last call.
  std::vector<std::string> takeWarnings();
  // How it was opened.
  const SessionOptions& options() const { return options_; }
  // As far as the options say, for one set of sizes. Packages are programs already.
  Diagnosed<Compilation> compileWhole(const SessionOptions& options) const;
  // What it was read from; null for a text form or package.
  const onnx::Model* file() const { return model_ ? &*model_ : nullptr; }
  // The graph or programs that it is, as text; null for what came from a file.
  const TextForm* form() const { return form_ ? &*form_ : nullptr; }
  const std::string& path() const { return path_; }
  // The place of faults that a run or compilation of it met.
  Diagnostics placed(const Diagnostics& faults) const;
  // The text of what is there after a phase or pass: the graph, or the program.
  Diagnosed<std::string> text(const SessionOptions& options, bool onProgram) const;
  // Writes the graph that is there after a phase or pass as an ONNX file.
  Diagnosed<Unit> exportTo(const std::string& path, const SessionOptions& options, bool externalData) const;

private:
  void describe(const onnx::Graph& graph);
  void describe(const Compilation& compiled);
  Diagnosed<Compilation> compiledTo(const SessionOptions& options, bool onProgram) const;
  Diagnosed<Unit> openText(const SessionOptions& options);
  Diagnosed<std::vector<ModelValue>> runText(const std::string& function, const Inputs& inputs);
  Result<size_t> stateIndex(const std::string& name) const;

  WholeMutex hearing_;
  std::vector<std::string> warnings_;
  std::string path_;
  std::optional<onnx::Model> model_;    // none for a text form or package
  std::optional<TextForm> form_;        // of a text form in memory
  std::optional<Compilation> package_;  // until it is opened
  std::vector<FunctionSpec> functions_;
  SessionOptions options_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<Network> network_;  // of a text form, which has its sizes
};

}  // namespace aglow::python
