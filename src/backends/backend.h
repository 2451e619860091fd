// What every backend offers: which operators it wants whole, and executables made from programs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/phases.h"
#include "backends/state.h"
#include "fuse/policy.h"
#include "graph/node.h"
#include "inst/program.h"
#include "support/decision.h"
#include "support/thread_pool.h"
#include "tensor/tensor_pool.h"

namespace aglow {

// Called when an instruction begins and ends, with its number in the program that was compiled. A backend that splits
// an instruction over threads calls it for each thread's part, and calls of different threads may come at the same
// time; of each thread they come in pairs. Markers and skipped instructions may be left out.
class RunObserver {
public:
  virtual ~RunObserver() = default;
  virtual void begin(size_t instr, int thread) = 0;
  virtual void end(size_t instr, int thread) = 0;
};

// What an executable is and holds, for reports.
struct ExecutableFacts {
  std::string target;      // the machine it runs on: triple and processor
  int threads = 1;         // at most, in one run
  int64_t arenaBytes = 0;  // for intermediate results
  int64_t weightsBytes = 0;
  int64_t stateBytes = 0;
  bool cached = false;  // code was found, not generated
};

// One function of an executable. Inputs and outputs are the program's placeholders, in order.
struct EntryPoint {
  std::string name;
  std::vector<Binding> inputs, outputs;
};

// The compiled programs of a module with their memory; functions are chosen by their number, which is 0 for a module
// with a single one. One run at a time.
class Executable {
public:
  virtual ~Executable() = default;

  std::span<const EntryPoint> functions() const { return functions_; }
  // By name, or, without one, the only function or that named main; Usage error with the names there are.
  Result<size_t> find(std::string_view name = {}) const;
  std::span<const Binding> inputs(size_t function = 0) const { return functions_[function].inputs; }
  std::span<const Binding> outputs(size_t function = 0) const { return functions_[function].outputs; }
  virtual ExecutableFacts facts() const = 0;

  // What stays from run to run, shared by all functions. A run that fails may leave it half changed.
  State& state() { return *state_; }
  const State& state() const { return *state_; }

  // One tensor per input, in order, of its type; one tensor per output comes back.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, RunObserver* observer = nullptr, size_t function = 0);
  // The same in the caller's memory: inputs are read and outputs written where they lie. Addresses are aligned to their
  // elements; an output overlaps nothing else, unless it is the same placeholder as an input.
  Status run(std::span<const TensorRef> inputs, std::span<const TensorRef> outputs, RunObserver* observer = nullptr,
             size_t function = 0);

protected:
  explicit Executable(std::span<const Program> programs);
  Executable(Executable&&) = default;

  // One address per binding, checked. A placeholder that is input and output has two, which may be the same; only that
  // of the output is written.
  virtual Status execute(size_t function, std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                         RunObserver* observer) = 0;

private:
  std::vector<EntryPoint> functions_;
  std::unique_ptr<State> state_;
};

struct BackendOptions {
  int64_t memoryLimit = 0;                   // bytes of arena, constants, inputs and outputs together; 0: none
  int threads = 1;                           // at most this many
  std::string cache = {};                    // folder where generated code is kept; none: nowhere
  std::shared_ptr<ThreadPool> pool = {};     // with at least `threads` threads; none: that of the process
  std::shared_ptr<TensorPool> weights = {};  // where equal constants of several programs are kept once
};

class Backend {
public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  // Whether instructions of this node's operator can be compiled. For a composite, yes keeps it from being lowered.
  virtual Decision supports(const Node& node) const = 0;
  // How it runs an instruction that computes, in a program that may have been made for another backend or machine; no
  // plan where it has nothing to choose. UnsupportedFeature with the reason for an instruction that it cannot run.
  virtual Result<std::optional<Plan>> plan(const Program& program, const Instr& instr) const = 0;
  // Which fused instructions it runs; null: all. Those of a file that it would not have made are taken apart.
  virtual const FusePolicy* fusePolicy() const { return nullptr; }
  // Inserts phases of its own, replaces and leaves out others.
  virtual void changePhases(PhaseList&) const {}
  // The programs of a module, placed.
  virtual Result<std::unique_ptr<Executable>> compile(std::vector<Program> programs,
                                                      const BackendOptions& options) const = 0;
  // The same for one.
  Result<std::unique_ptr<Executable>> compile(Program program, const BackendOptions& options) const;
};

// The tensors in the order of the bindings. A missing name is a MissingBinding error; an unknown one, or another type,
// is BadBinding.
Result<std::vector<Tensor>> bindByName(std::span<const Binding> bindings, const std::map<std::string, Tensor>& named);
// Checks number, types and alignment of tensors that are in order already; `what` they are is for messages.
Status checkBound(std::span<const Binding> bindings, std::span<const TensorRef> tensors, std::string_view what);

// Placeholders as bindings.
std::vector<Binding> bindingsOf(const Program& program, std::span<const RegionId> placeholders);
// Bytes that runs of the programs, one at a time, need for intermediate results.
int64_t arenaBytes(std::span<const Program> programs);
// TooLarge when the programs' arena and declared regions, and what the backend needs besides, are more than the limit
// allows.
Status checkMemory(std::span<const Program> programs, const BackendOptions& options, int64_t moreBytes = 0);

}  // namespace aglow
