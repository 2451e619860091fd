// The interpreter: runs a placed program with the reference kernels. It is the oracle of all other backends.
#pragma once

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
  // The bytes of a region, for observers of a run; those of locals while their instruction runs and until the next one.
  TensorRef ref(RegionId id, size_t function = 0) const { return programs_[function].ref(id); }

protected:
  Status execute(size_t function, std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                 RunObserver* observer) override;

private:
  // A program, and where its regions are.
  struct Loaded {
    Program program;
    std::vector<Extent> extents;
    std::vector<Tensor> constants;                 // held
    std::vector<std::byte*> bases;                 // by region: the bytes of those that own some
    std::vector<std::optional<nest::Nest>> nests;  // by instruction

    TensorRef ref(RegionId id) const;
  };
  // Values inside of fused instructions; the kernels need memory for them.
  struct LocalPlaces {
    std::vector<int64_t> offsets;  // by region
    int64_t bytes = 0;
  };
  static Result<LocalPlaces> placeLocals(const Program& program);

  InterpreterExecutable(std::vector<Program> programs, const InterpreterOptions& options,
                        const std::vector<LocalPlaces>& places, int64_t localBytes);

  // The bytes of each placeholder, for the run that begins.
  void bind(Loaded& loaded, std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs) const;
  Status execute(const Loaded& loaded, size_t number);
  Status compute(const Loaded& loaded, const Instr& instr);
  Status compute(const Loaded& loaded, const Instr& instr, const nest::Nest& nest);
  static bool skipped(const Loaded& loaded, const Instr& instr);
  static void fillPoison(const Loaded& loaded, RegionId id);

  std::vector<Loaded> programs_;
  InterpreterOptions options_;
  int64_t weightsBytes_ = 0;
  Tensor arena_, locals_;            // of whichever program runs
  std::vector<TensorRef> in_, out_;  // of the instruction that runs
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
