// What every backend offers: which operators it wants whole, and executables made from programs.
#pragma once

#include <chrono>
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
#include "support/turnstile.h"
#include "tensor/tensor_pool.h"

namespace aglow {

// Called when an instruction begins and ends, with its number in the program that was compiled; the calls come from one
// thread, in pairs. Markers and skipped instructions may be left out.
class RunObserver {
public:
  using Time = std::chrono::steady_clock::time_point;

  virtual ~RunObserver() = default;
  virtual void begin(size_t instr) = 0;
  virtual void end(size_t instr) = 0;
  // A part of an instruction that is shared was done by one of the run's threads, which are numbered from 0. Different
  // threads may call at the same time.
  virtual void part(size_t /*instr*/, int /*thread*/, Time /*begin*/, Time /*end*/) {}
};

// What an executable is and holds, for reports.
struct ExecutableFacts {
  std::string target;      // the machine it runs on: triple and processor
  int threads = 1;         // at most, in one run
  int contexts = 1;        // runs side by side, at most
  int64_t arenaBytes = 0;  // for intermediate results, of each run
  int64_t weightsBytes = 0;
  int64_t stateBytes = 0;
  bool cached = false;  // code was found, not generated
};

// One function of an executable. Inputs and outputs are the program's placeholders, in order.
struct EntryPoint {
  std::string name;
  std::vector<Binding> inputs, outputs;
};

// How many runs go side by side, and how many callers may wait for one of them to end.
struct RunLimits {
  size_t contexts = 1;
  size_t queue = Turnstile::kNoBound;
};

// What a run has for itself, kept for the next one; backends add their memory. Nothing in it changes its size once it
// is made: a forked child uses it again, even where a thread of its parent was in the middle of something.
struct RunContext {
  virtual ~RunContext() = default;
  std::vector<const std::byte*> inputs;  // room for those of any function
  std::vector<std::byte*> outputs;
};

// The compiled programs of a module with their memory; functions are chosen by their number, which is 0 for a module
// with a single one. Safe from several threads: code and constants are there once, and each run under way has a context
// of its own, made when it is first needed. Runs that change state go one after the other, and those that only read it
// see it as it is between two of them.
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
  // elements; an output overlaps nothing else, unless it is the same placeholder as an input. Busy where too
  // many callers wait already; OutOfMemory where one more context cannot be had.
  Status run(std::span<const TensorRef> inputs, std::span<const TensorRef> outputs, RunObserver* observer = nullptr,
             size_t function = 0);

protected:
  Executable(std::span<const Program> programs, const RunLimits& limits);
  Executable(Executable&&) = default;

  int contexts() const { return static_cast<int>(turnstile_->places()); }
  // The first is made at once, by the constructor of the backend's class. Throws bad_alloc.
  RunContext& makeFirstContext() { return contextAt(0); }
  virtual std::unique_ptr<RunContext> makeContext() = 0;
  // One address per binding, checked. A placeholder that is input and output has two, which may be the same; only that
  // of the output is written.
  virtual Status execute(RunContext& context, size_t function, std::span<const std::byte* const> inputs,
                         std::span<std::byte* const> outputs, RunObserver* observer) = 0;

private:
  // What the caller has a place for; made where there is none yet.
  RunContext& contextAt(size_t place);

  std::vector<EntryPoint> functions_;
  std::vector<SharedTurns::Use> stateUses_;  // by function
  std::unique_ptr<State> state_;
  size_t queue_;
  std::unique_ptr<Turnstile> turnstile_;               // a place for each context
  std::vector<std::unique_ptr<RunContext>> contexts_;  // by place; made when they are first needed
};

inline constexpr int kMaxContexts = 1024, kDefaultQueue = 1024;

struct BackendOptions {
  int64_t memoryLimit = 0;                   // bytes of arena, constants, inputs and outputs together; 0: none
  int threads = 1;                           // at most this many
  int contexts = 0;                          // runs side by side, at most; 0: defaultContexts()
  int queue = kDefaultQueue;                 // callers that may wait while as many runs are under way
  std::shared_ptr<ThreadPool> pool = {};     // with at least `threads` threads; none: that of the process
  std::shared_ptr<TensorPool> weights = {};  // where equal constants of several programs are kept once

  std::shared_ptr<ThreadPool> threadPool() const;  // never null
};

class Backend {
public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  // Whether instructions of this node's operator can be compiled. For a composite, yes keeps it from being lowered.
  virtual Decision supports(const Node& node) const = 0;
  // Whether a convolution or product of floats by constant weights is worth computing with bytes; if not, why not.
  virtual Decision quantizes(const Node& /*product*/) const { return Decision::yes(); }
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
// What the options allow of programs that passed this check: no more runs side by side than have their own arena,
// inputs and outputs within the limit of memory, and always one.
RunLimits runLimits(std::span<const Program> programs, const BackendOptions& options, int64_t moreBytes = 0);
// What a caller gets who may not even wait.
Error busy(const RunLimits& limits);
// Usage where there are fewer contexts than none, too many, or a negative number that waits.
Status checkContexts(int contexts, int queue);
// Two per processor.
int defaultContexts();

}  // namespace aglow
