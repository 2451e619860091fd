// The interpreter: runs a placed program with the reference kernels. It is the oracle of all other backends.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "backends/backend.h"
#include "codegen/nest/nest.h"

namespace aglow {

struct InterpreterOptions : BackendOptions {
  // Fills the arena, and each buffer when it begins and ends, with 0xFF, so that stale reads show. The default is true
  // in builds that look for faults.
  bool poison = poisonByDefault();
  // Runs data-parallel and fused instructions as the nests that code generators print, instead of with the reference
  // kernels: a test of the nests.
  bool nests = false;

  static bool poisonByDefault();
};

class InterpreterExecutable final : public Executable {
public:
  // TooLarge before anything is allocated; OutOfMemory when the arena cannot be had.
  static Result<InterpreterExecutable> create(std::vector<Program> programs, const InterpreterOptions& options = {});
  static Result<InterpreterExecutable> create(Program program, const InterpreterOptions& options = {});

  ExecutableFacts facts() const override;

  const Program& program(size_t function = 0) const { return programs_[function].program; }
  // The bytes of a region, for the observer of a run, in the one that began last with an observer; those of locals
  // while their instruction runs and until the next one.
  TensorRef ref(RegionId id, size_t function = 0) const;

protected:
  std::unique_ptr<RunContext> makeContext() override;
  Status execute(RunContext& context, size_t function, std::span<const std::byte* const> inputs,
                 std::span<std::byte* const> outputs, RunObserver* observer) override;

private:
  // Values inside of fused instructions; the kernels need memory for them.
  struct LocalPlaces {
    std::vector<int64_t> offsets;  // by region
    int64_t bytes = 0;
  };
  struct Loaded {
    Program program;
    LocalPlaces locals;
    std::vector<Extent> extents;
    std::vector<std::optional<nest::Nest>> nests;  // by instruction
  };
  // The memory of one run.
  struct Context : RunContext {
    Tensor arena, locals;                        // of whichever program runs
    std::vector<std::vector<std::byte*>> bases;  // by program, by region: the bytes of those that own some
  };
  // A run under way.
  struct Run {
    const Loaded& loaded;
    Context& context;
    std::vector<std::byte*>& bases;
    std::vector<TensorRef> in = {}, out = {};  // of the instruction that runs

    const Program& program() const { return loaded.program; }
    TensorRef ref(RegionId id) const;
  };
  static Result<LocalPlaces> placeLocals(const Program& program);

  InterpreterExecutable(std::vector<Program> programs, const InterpreterOptions& options,
                        std::vector<LocalPlaces> places, int64_t localBytes);

  // The bytes of each placeholder, for the run that begins.
  void bind(const Run& run, std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs) const;
  Status execute(Run& run, size_t number) const;
  static Status compute(Run& run, const Instr& instr);
  static Status compute(Run& run, const Instr& instr, const nest::Nest& nest);
  static Status computeRows(Run& run, const Instr& instr);
  static bool skipped(const Run& run, const Instr& instr);
  static void fillPoison(const Run& run, RegionId id);

  std::vector<Loaded> programs_;
  InterpreterOptions options_;
  int64_t arenaBytes_, localBytes_;
  int64_t weightsBytes_ = 0;
  std::unique_ptr<std::atomic<Context*>> observed_;  // of the run that began last with an observer
};

class Interpreter final : public Backend {
public:
  std::string_view name() const override { return "interpreter"; }
  Decision supports(const Node& node) const override;
  // Nothing to choose: there is one reference kernel for each operator.
  Result<std::optional<Plan>> plan(const Program& program, const Instr& instr) const override;
  using Backend::compile;
  Result<std::unique_ptr<Executable>> compile(std::vector<Program> programs,
                                              const BackendOptions& options) const override;
};

}  // namespace aglow
