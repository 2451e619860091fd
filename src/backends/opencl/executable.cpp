// Execution on a device: everything has its place in one of five buffers, kernels have their arguments from the
// beginning, and a run is one row of commands without a word from the host in between.
#include "backends/opencl/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "backends/opencl/copy_queue.h"
#include "backends/opencl/driver.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/memory_plan.h"
#include "backends/opencl/steps.h"
#include "backends/opencl/timeline.h"
#include "support/stop.h"

namespace aglow::opencl {

namespace {

// The caller's memory, by placeholder; inputs are only read.
struct HostBytes {
  std::map<RegionId, std::byte*> inputs, outputs;
};

// What a run has for itself.
struct DeviceRun : RunContext {
  Status made;
  OwnQueue queue;
  std::optional<CopyQueue> copies;  // where something travels
  OwnMemory arena, io, faults;
  std::array<Memory, kBuffers> buffers = {};
  std::vector<std::vector<OwnKernel>> kernels;  // by program, by step
  std::vector<Fault> seen;
};

class DeviceExecutable final : public Executable {
public:
  DeviceExecutable(std::span<const Program> programs, const Device& device, MemoryPlan plan, Driver driver,
                   const RunLimits& limits)
      : Executable(programs, limits), device_(device), plan_(std::move(plan)), driver_(std::move(driver)) {}

  Status load(std::vector<Program> programs, const codegen::DeviceShape& shape, const std::string& cache) {
    for (Program& program : programs) programs_.push_back(makeSteps(std::move(program), plan_, kernels_, shape));
    AGLOW_OK(kernels_.build(device_, driver_.context(), cache));
    AGLOW_TRY(weights_, driver_.makeBuffer(plan_.bytes[kWeights]));
    AGLOW_TRY(state_, driver_.makeBuffer(plan_.bytes[kState]));
    AGLOW_OK(uploadWeights());
    return static_cast<DeviceRun&>(makeFirstContext()).made;
  }

  ExecutableFacts facts() const override {
    return {.target = fmt::format("OpenCL {} ({})", device_.name, device_.platformName),
            .threads = static_cast<int>(device_.computeUnits),
            .contexts = contexts(),
            .arenaBytes = static_cast<int64_t>(plan_.bytes[kArena]),
            .weightsBytes = static_cast<int64_t>(plan_.bytes[kWeights]),
            .stateBytes = state().bytes()};
  }

protected:
  std::unique_ptr<RunContext> makeContext() override {
    auto run = std::make_unique<DeviceRun>();
    run->made = fillContext(*run);
    return run;
  }

  Status execute(RunContext& given, size_t function, std::span<const std::byte* const> inputs,
                 std::span<std::byte* const> outputs, RunObserver* observer) override {
    auto& run = static_cast<DeviceRun&>(given);
    if (!run.made.ok()) return run.made.error();
    // Times of commands are for a queue of their own: to note them may cost.
    OwnQueue profiling;
    std::optional<CopyQueue> profiledCopies;
    std::optional<Timeline> timeline;
    auto* watcher = dynamic_cast<DeviceObserver*>(observer);
    if (watcher != nullptr) {
      AGLOW_TRY(profiling, driver_.makeQueue(kQueueProfiling));
      timeline.emplace(driver_.api());
      if (run.copies) {
        AGLOW_TRY(profiledCopies, CopyQueue::create(driver_, kQueueProfiling));
      }
    }
    const Commands commands{.queue = watcher == nullptr ? run.queue.get() : profiling.get(),
                            .copies = profiledCopies ? &*profiledCopies
                                      : run.copies   ? &*run.copies
                                                     : nullptr,
                            .timeline = timeline ? &*timeline : nullptr};
    Status done = enqueue(run, commands, function, inputs, outputs);
    // Even where a command was refused: those before it may still use the caller's memory.
    Status finished = driver_.finish(commands.queue);
    if (commands.copies != nullptr) {
      Status copied = commands.copies->finish(driver_);
      if (finished.ok()) finished = std::move(copied);
    }
    AGLOW_OK(std::move(done));
    AGLOW_OK(std::move(finished));
    if (timeline) AGLOW_OK(timeline->tell(*watcher));
    return programs_[function].checkFaults(run.seen);
  }

private:
  // Where the commands of a run go, and who notes their times.
  struct Commands {
    Queue queue = nullptr;
    CopyQueue* copies = nullptr;
    Timeline* timeline = nullptr;

    Event* copy(std::string_view what, const std::string& name, int64_t bytes) const {
      return timeline == nullptr ? nullptr : timeline->copy(fmt::format("{} {}", what, name), bytes);
    }
  };

  Status uploadWeights() {
    AGLOW_TRY(OwnQueue queue, driver_.makeQueue());
    std::set<std::string_view> written;
    for (const Loaded& loaded : programs_)
      for (const Region& region : loaded.program.regions) {
        const auto* constant = region.as<ConstantInit>();
        if (constant == nullptr || inHost(region) || !written.insert(region.name).second) continue;
        AGLOW_OK(driver_.write(queue.get(), weights_.get(), offsetOf(region.name), constant->bytes.data(),
                               region.type.bytes()));
      }
    AGLOW_OK(driver_.finish(queue.get()));
    // The device has its own: nobody reads them here again, but for those that travel.
    for (Loaded& loaded : programs_)
      for (Region& region : loaded.program.regions)
        if (auto* constant = region.as<ConstantInit>(); constant != nullptr && !inHost(region)) constant->bytes = {};
    return {};
  }

  Status fillContext(DeviceRun& run) {
    AGLOW_TRY(run.queue, driver_.makeQueue());
    AGLOW_TRY(run.arena, driver_.makeBuffer(plan_.bytes[kArena]));
    AGLOW_TRY(run.io, driver_.makeBuffer(plan_.bytes[kIo]));
    AGLOW_TRY(run.faults, driver_.makeBuffer(plan_.bytes[kFaults]));
    run.buffers = {run.arena.get(), weights_.get(), state_.get(), run.io.get(), run.faults.get()};
    size_t checked = 0;
    for (const Loaded& loaded : programs_) {
      checked = std::max(checked, loaded.checked.size());
      if (!loaded.transfers.empty() && !run.copies) {
        AGLOW_TRY(run.copies, CopyQueue::create(driver_));
      }
      std::vector<OwnKernel>& kernels = run.kernels.emplace_back();
      for (const Step& step : loaded.steps) {
        if (step.kind != Step::Kind::Kernel) {
          kernels.emplace_back();
          continue;
        }
        AGLOW_TRY(OwnKernel kernel, kernels_.make(step.kernel));
        uint32_t at = 0;
        for (const Place& place : step.arguments) {
          const Api& api = driver_.api();
          int32_t number = api.SetKernelArg(kernel.get(), at++, sizeof(Memory), &run.buffers[place.buffer]);
          if (number == kSuccess) number = api.SetKernelArg(kernel.get(), at++, sizeof place.offset, &place.offset);
          if (number != kSuccess) return fault("clSetKernelArg", number).at(loaded.nodeOf(step.instr));
        }
        kernels.push_back(std::move(kernel));
      }
    }
    run.seen.resize(checked);
    return {};
  }

  Status enqueue(DeviceRun& run, const Commands& commands, size_t function, std::span<const std::byte* const> inputs,
                 std::span<std::byte* const> outputs) {
    const Loaded& loaded = programs_[function];
    Queue queue = commands.queue;
    const auto faultBytes = static_cast<int64_t>(loaded.checked.size() * sizeof(Fault));
    std::fill(run.seen.begin(), run.seen.end(), Fault{});
    AGLOW_OK(driver_.write(queue, run.faults.get(), 0, run.seen.data(), faultBytes));
    const HostBytes host = hostBytes(loaded.program, inputs, outputs);
    for (const auto& [id, from] : host.inputs)
      if (const Region& region = loaded.program[id]; !inHost(region))
        AGLOW_OK(driver_.write(queue, run.io.get(), offsetOf(region.name), from, region.type.bytes(),
                               commands.copy("input", region.name, region.type.bytes())));
    if (loaded.readsState) AGLOW_OK(moveState(queue, true));
    if (commands.copies != nullptr) commands.copies->begin(loaded.transfers.size());
    AGLOW_OK(enqueueSteps(run, commands, function, host));
    if (loaded.writesState) AGLOW_OK(moveState(queue, false));
    for (const auto& [id, to] : host.outputs)
      if (const Region& region = loaded.program[id]; !inHost(region))
        AGLOW_OK(driver_.read(queue, run.io.get(), offsetOf(region.name), to, region.type.bytes(),
                              commands.copy("output", region.name, region.type.bytes())));
    return driver_.read(queue, run.faults.get(), 0, run.seen.data(), faultBytes);
  }

  static HostBytes hostBytes(const Program& program, std::span<const std::byte* const> inputs,
                             std::span<std::byte* const> outputs) {
    HostBytes bytes;
    const std::vector<RegionId> in = program.inputs(), out = program.outputs();
    for (size_t i = 0; i < in.size(); ++i) bytes.inputs[in[i]] = const_cast<std::byte*>(inputs[i]);
    for (size_t i = 0; i < out.size(); ++i) bytes.outputs[out[i]] = outputs[i];
    return bytes;
  }

  Status startCopy(const DeviceRun& run, const Commands& commands, const Loaded& loaded, size_t number,
                   const HostBytes& host) const {
    const Transfer& transfer = loaded.transfers[number];
    const Region& region = loaded.program[transfer.region];
    const auto* constant = region.as<ConstantInit>();
    // Where the host has the bytes; those to the device are only read.
    std::byte* begin = constant != nullptr ? constant->bytes.ref().data
                       : transfer.toDevice ? host.inputs.at(transfer.region)
                                           : host.outputs.at(transfer.region);
    const char* what = constant != nullptr ? "weights" : transfer.toDevice ? "input" : "output";
    return commands.copies->start(driver_, commands.queue, number, transfer, run.buffers[transfer.place.buffer],
                                  begin + transfer.offset, commands.copy(what, region.name, transfer.bytes));
  }

  Status moveState(Queue queue, bool toDevice) {
    for (const Binding& binding : state().bindings()) {
      const uint64_t offset = offsetOf(binding.name);
      std::byte* bytes = state().address(binding.name);
      AGLOW_OK(toDevice ? driver_.write(queue, state_.get(), offset, bytes, binding.type.bytes())
                        : driver_.read(queue, state_.get(), offset, bytes, binding.type.bytes()));
    }
    return {};
  }

  // In batches, of which the host is at most two ahead of the device: so a run that is asked to stop ends soon, and the
  // device never waits for the host.
  Status enqueueSteps(DeviceRun& run, const Commands& commands, size_t function, const HostBytes& host) {
    const Loaded& loaded = programs_[function];
    const std::vector<OwnKernel>& kernels = run.kernels[function];
    const Api& api = driver_.api();
    const bool stops = StopScope::present();
    OwnEvent before;
    for (size_t i = 0; i < loaded.steps.size(); ++i) {
      const Step& step = loaded.steps[i];
      if (step.kind != Step::Kind::Kernel) {
        AGLOW_OK(step.kind == Step::Kind::Start ? startCopy(run, commands, loaded, step.transfer, host)
                                                : commands.copies->wait(driver_, commands.queue, step.transfer));
        continue;
      }
      const bool looks = stops && step.endsBatch && commands.timeline == nullptr;
      Event event = nullptr;
      Event* place = looks ? &event : commands.timeline != nullptr ? commands.timeline->kernel(step.instr) : nullptr;
      const int32_t number = api.EnqueueNDRangeKernel(commands.queue, kernels[i].get(), 2, nullptr, step.items.data(),
                                                      step.group.data(), 0, nullptr, place);
      if (number != kSuccess) return fault("clEnqueueNDRangeKernel", number).at(loaded.nodeOf(step.instr));
      if (!looks) continue;
      OwnEvent batch(api, event);
      AGLOW_OK(driver_.flush(commands.queue));
      if (before.get() != nullptr) AGLOW_OK(driver_.wait(before.get()));
      AGLOW_OK(StopScope::check());
      before = std::move(batch);
    }
    return {};
  }

  bool inHost(const Region& region) const {
    return region.declared() && plan_.declared.find(region.name)->second.buffer == kHost;
  }
  uint64_t offsetOf(std::string_view declared) const { return plan_.declared.find(declared)->second.offset; }

  Device device_;
  MemoryPlan plan_;
  Driver driver_;
  std::vector<Loaded> programs_;
  KernelSet kernels_;
  OwnMemory weights_, state_;
};

}  // namespace

Result<std::unique_ptr<Executable>> makeExecutable(std::vector<Program> programs, const Device& device,
                                                   const codegen::DeviceShape& shape, const BackendOptions& options,
                                                   const std::string& cache) {
  MemoryPlan plan(programs);
  AGLOW_OK(plan.check(device));
  RunLimits limits = runLimits(programs, options);
  // Weights travel because one run fills the device.
  const auto travels = [&](const Region& region) {
    return region.as<ConstantInit>() != nullptr && plan.declared.find(region.name)->second.buffer == kHost;
  };
  for (const Program& program : programs)
    if (std::any_of(program.regions.begin(), program.regions.end(), travels)) limits.contexts = 1;
  AGLOW_TRY(Driver driver, Driver::create(device));
  auto executable = std::make_unique<DeviceExecutable>(programs, device, std::move(plan), std::move(driver), limits);
  AGLOW_OK(executable->load(std::move(programs), shape, cache));
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace aglow::opencl
