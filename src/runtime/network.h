// A compiled module, ready to be run from any number of threads, side by side: code and constants are there once, and
// each run under way has memory of its own. Runs that change state take turns.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "graph/model_value.h"
#include "support/fork.h"

namespace aglow {

class Network {
public:
  // The value of an input by its name in the function's interface; null where there is none.
  using Lookup = std::function<const ModelValue*(const std::string& name)>;
  // Where outputs lie: in memory of their own, or, once nobody else holds it, in that of earlier runs. The state of a
  // loop goes back and forth between two such places.
  enum class OutputMemory : uint8_t { Fresh, Reused };

  // The complete programs of a module.
  static Result<std::unique_ptr<Network>> load(Compilation compilation, const BackendOptions& options = {});

  // What the functions take and give.
  std::span<const Interface> functions() const { return interfaces_; }
  // By name, or, without one, the only function or that named main; Usage error with the names there are.
  Result<size_t> find(std::string_view name = {}) const { return executable_->find(name); }
  // The placeholders of a function that its program reads and writes.
  std::span<const Binding> inputs(size_t function) const { return executable_->inputs(function); }
  std::span<const Binding> outputs(size_t function) const { return executable_->outputs(function); }
  ExecutableFacts facts() const { return executable_->facts(); }

  // The inputs in the order of the placeholders. Only those that the program reads are looked up; one that is not there
  // is MissingBinding.
  Result<std::vector<Tensor>> bind(size_t function, const Lookup& inputs) const;
  // Gives one value per output of the interface. An input that does not fit is BadBinding; Busy where as many
  // runs are under way as may be, and as many callers wait.
  Result<std::vector<ModelValue>> run(size_t function, const Lookup& inputs, OutputMemory memory = OutputMemory::Fresh);
  // In the caller's memory, in the order of the placeholders (Executable::run has the rules).
  Status run(size_t function, std::span<const TensorRef> inputs, std::span<const TensorRef> outputs,
             RunObserver* observer = nullptr);

  // What stays from run to run, shared by all functions; as it is between two runs that change it.
  std::span<const Binding> states() const { return executable_->state().bindings(); }
  // The number of a name; none: states().size().
  size_t findState(std::string_view name) const { return executable_->state().find(name); }
  Result<Tensor> state(size_t index);
  Status setState(size_t index, const TensorRef& value);
  void resetState();

private:
  // Where a placeholder that the program reads comes from: a port, and which item where that is a sequence.
  struct Source {
    size_t port = 0, item = 0;
  };
  // How the ports of one function are wired to its program.
  struct Wiring {
    std::vector<Source> inputs;                // by placeholder
    std::vector<std::vector<size_t>> outputs;  // by port: placeholders
    std::vector<std::vector<Tensor>> spare;    // by output placeholder: memory of earlier runs, or of those under way
  };

  Network(std::unique_ptr<Executable> executable, std::vector<Interface> interfaces);

  Result<std::vector<Tensor>> execute(size_t function, std::span<const Tensor> inputs, OutputMemory memory);
  // Memory for outputs that nobody holds any more.
  std::vector<Tensor> takeSpare(size_t function);

  std::unique_ptr<Executable> executable_;
  std::vector<Interface> interfaces_;
  std::vector<Wiring> wirings_;  // by function
  size_t spares_;                // kept for each output, at most
  WholeMutex mutex_;             // of spare memory
};

// Looks values up by their names.
Network::Lookup valuesIn(const std::map<std::string, ModelValue>& values);

// A plain tensor of the shape of a quantized type as that type: files and arrays hold no scales.
Tensor withScales(const Tensor& tensor, const Type& type);

// Compiles a module, runs its only function (or that named main) once, and gives its outputs by name: the short way for
// programs that build their own.
Result<std::map<std::string, Tensor>> runModule(std::unique_ptr<Module> module,
                                                const std::map<std::string, Tensor>& inputs,
                                                const CompileOptions& options = {});

}  // namespace aglow
