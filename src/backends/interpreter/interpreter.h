// The interpreter: runs a placed program with the reference kernels. It is the oracle of all other backends.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>

#include "backends/device_backend.h"
#include "codegen/nest/nest.h"
#include "memory/timeline.h"

namespace aglow {

struct InterpreterOptions : BackendOptions {
  // Fills the arena, and each buffer when it begins and ends, with 0xFF, so that stale reads show. The default is true
  // in builds that look for faults.
  bool poison = poisonByDefault();
  // Runs data-parallel and fused instructions as the nests that code generators print, instead of with the reference
  // kernels: a test of the nests.
  bool nests = false;
  // A simulated device: a clock runs along, on which copies from and to the host travel beside what is computed.
  std::optional<LatencyModel> clock = {};

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
  // What the simulated device did in this run; nothing without a clock.
  const Timeline& timeline() const { return observed_->load()->timeline; }

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
    Timeline timeline;
  };
  // A run under way.
  struct Run {
    const Loaded& loaded;
    Context& context;
    std::vector<std::byte*>& bases;
    std::vector<TensorRef> in = {}, out = {};  // of the instruction that runs
    std::set<int64_t> travelling = {};         // tokens of copies under way

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
  static void copy(const Run& run, const Instr& instr);
  static void fillPoison(const Run& run, RegionId id);

  std::vector<Loaded> programs_;
  InterpreterOptions options_;
  int64_t arenaBytes_, localBytes_;
  int64_t weightsBytes_ = 0;
  std::unique_ptr<std::atomic<Context*>> observed_;  // of the run that began last with an observer
};

class Interpreter final : public DeviceBackend {
public:
  // Computes in the host's memory; or simulates a device with so many bytes of its own, or with these latencies.
  explicit Interpreter(int64_t deviceBytes = 0) : Interpreter(simulatedDevice(deviceBytes)) {}
  explicit Interpreter(const LatencyModel& device) : device_(device) {}

  std::string_view name() const override { return "interpreter"; }
  Decision supports(const Node& node) const override;
  // Nothing to choose: there is one reference kernel for each operator.
  Result<std::optional<Plan>> plan(const Program& program, const Instr& instr) const override;
  LatencyModel latencies() const override { return device_; }
  using Backend::compile;
  Result<std::unique_ptr<Executable>> compile(std::vector<Program> programs,
                                              const BackendOptions& options) const override;

private:
  // A small accelerator behind PCI Express.
  static LatencyModel simulatedDevice(int64_t bytes) {
    return {.flopsPerSecond = 1e12,
            .bytesPerSecond = 100e9,
            .startSeconds = 5e-6,
            .copyBytesPerSecond = 12e9,
            .copyStartSeconds = 10e-6,
            .travel = bytes == 0 ? LatencyModel::Travel::Never : LatencyModel::Travel::Always,
            .memoryBytes = bytes};
  }

  LatencyModel device_;
};

}  // namespace aglow
