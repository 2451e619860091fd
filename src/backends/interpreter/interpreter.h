// The interpreter: runs a placed program with the reference kernels. It is the oracle of all other backends.
#pragma once

#include <memory>

#include "backends/backend.h"

namespace aglow {

struct InterpreterOptions : BackendOptions {
  // Fills the arena, and each buffer when it begins and ends, with 0xFF, so that stale reads show. The default is true
  // in builds that look for faults.
  bool poison = poisonByDefault();

  static bool poisonByDefault();
};

class InterpreterExecutable final : public Executable {
public:
  // TooLarge before anything is allocated; OutOfMemory when the arena cannot be had.
  static Result<InterpreterExecutable> create(Program program, const InterpreterOptions& options = {});

  std::span<const Binding> inputs() const override { return inputs_; }
  std::span<const Binding> outputs() const override { return outputs_; }
  ExecutableFacts facts() const override;

  const Program& program() const { return program_; }

protected:
  Status execute(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                 RunObserver* observer) override;

private:
  // Values inside of fused instructions; the kernels need memory for them.
  struct LocalPlaces {
    std::vector<int64_t> offsets;  // by region
    int64_t bytes = 0;
  };
  static Result<LocalPlaces> placeLocals(const Program& program);

  InterpreterExecutable(Program program, const InterpreterOptions& options, const LocalPlaces& places);

  // The bytes of each placeholder, for the run that begins.
  void bind(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs);
  Status execute(const Instr& instr);
  Status compute(const Instr& instr);
  bool skipped(const Instr& instr) const;
  void fillPoison(RegionId id);
  TensorRef ref(RegionId id) const;

  Program program_;
  InterpreterOptions options_;
  std::vector<Binding> inputs_;
  std::vector<Binding> outputs_;
  std::vector<Extent> extents_;
  Tensor arena_, locals_;
  std::vector<Tensor> owned_;        // by region: constants, and what the program keeps from run to run
  std::vector<std::byte*> bases_;    // by region: the bytes of those that own some
  std::vector<TensorRef> in_, out_;  // of the instruction that runs
};

class Interpreter final : public Backend {
public:
  std::string_view name() const override { return "interpreter"; }
  Decision supports(const Node& node) const override;
  Result<std::unique_ptr<Executable>> compile(Program program, const BackendOptions& options) const override;
};

}  // namespace aglow
