// Execution on a device: everything has its place in a few buffers, kernels have their arguments from the beginning,
// and a run is one row of commands without a word from the host in between.
#include "backends/opencl/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "backends/device/host_bytes.h"
#include "backends/device/steps.h"
#include "backends/opencl/copy_queue.h"
#include "backends/opencl/driver.h"
#include "backends/opencl/host_memory.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/timeline.h"
#include "support/machine.h"
#include "support/stop.h"

namespace aglow::opencl {

namespace {

using device::Fault;
using device::HostBytes;
using device::Loaded;
using device::MemoryPlan;
using device::Slot;
using device::Step;
using device::Transfer;

// Where a slot lies.
struct Bound {
  Memory memory = nullptr;
  uint64_t offset = 0;
};

// What a run has for itself.
struct DeviceRun {
  OwnQueue queue;
  std::optional<CopyQueue> copies;   // where something travels
  std::shared_ptr<Staging> staging;  // none where the driver copies from and to the caller's memory
  std::vector<OwnMemory> memory;
  std::vector<Bound> bound;                     // by slot
  std::vector<std::vector<OwnKernel>> kernels;  // by program, by step
  std::vector<Fault> seen;
};

// None where it could not be made: the next run tries again.
struct Context : RunContext {
  std::optional<DeviceRun> run;
};

class DeviceExecutable final : public Executable, StateDevice {
public:
  DeviceExecutable(std::span<const Program> programs, const Device& device, MemoryPlan plan,
                   std::shared_ptr<Driver> driver, bool sharesMemory, std::shared_ptr<ThreadPool> pool,
                   const RunLimits& limits)
      : Executable(programs, limits),
        device_(device),
        sharesMemory_(sharesMemory),
        plan_(std::move(plan)),
        driver_(std::move(driver)),
        pool_(std::move(pool)) {}

  Status load(std::vector<Program> programs, const codegen::DeviceShape& shape, const std::string& cache,
              TensorPool* pool) {
    for (Program& program : programs) programs_.push_back(makeSteps(std::move(program), plan_, kernels_, shape));
    if (!device_.doubles && !device_.pairs) AGLOW_OK(refuseDoubles());
    AGLOW_OK(kernels_.build(device_, driver_->context(), cache));
    bound_.resize(plan_.slots.size());
    AGLOW_OK(makeBuffers(device::kState, memory_, bound_));
    if (!memory_.empty()) {
      AGLOW_TRY(stateQueue_, driver_->makeQueue());
    }
    AGLOW_OK(placeWeights(pool));
    return filled(static_cast<Context&>(makeFirstContext()));
  }

  ExecutableFacts facts() const override {
    return {.target = fmt::format("OpenCL {} ({})", device_.name, device_.platformName),
            .threads = static_cast<int>(device_.computeUnits),
            .contexts = contexts(),
            .arenaBytes = static_cast<int64_t>(plan_.bytesOf(device::kArena)),
            .weightsBytes = static_cast<int64_t>(plan_.bytesOf(device::kWeights)),
            .stateBytes = state().bytes()};
  }

protected:
  std::unique_ptr<RunContext> makeContext() override { return std::make_unique<Context>(); }

  Status execute(RunContext& given, size_t function, std::span<const std::byte* const> inputs,
                 std::span<std::byte* const> outputs, RunObserver* observer) override {
    AGLOW_OK(driver_->api().usable());
    auto& context = static_cast<Context&>(given);
    const Loaded& loaded = programs_[function];
    Status done = filled(context);
    if (done.ok() && loaded.readsState) done = state().bringTo(*this);
    // Also where the run does not end well, or throws.
    if (done.ok() && loaded.writesState) state().leftOn(*this);
    if (done.ok()) done = runOnce(*context.run, function, HostBytes(loaded.program, inputs, outputs), observer);
    if (!done.ok() && done.error().code == Code::Device) driver_->lose();
    return done;
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

  // However a run ends: commands that were enqueued may use the caller's memory until they are done.
  class Pending {
  public:
    Pending(const Driver& driver, const Commands& commands) : driver_(driver), commands_(commands) {}
    Pending(const Pending&) = delete;
    ~Pending() {
      if (!finished_) static_cast<void>(finish());
    }

    Status finish() {
      finished_ = true;
      Status done = driver_.finish(commands_.queue);
      Status copied = commands_.copies == nullptr ? Status() : commands_.copies->finish(driver_);
      return done.ok() ? copied : done;
    }

  private:
    const Driver& driver_;
    const Commands& commands_;
    bool finished_ = false;
  };

  // All that compute with f64 of the model.
  Status refuseDoubles() const {
    std::string nodes;
    for (const Loaded& loaded : programs_)
      for (const size_t instr : loaded.computesF64(kernels_)) nodes += "\n  " + loaded.nodeOf(instr);
    if (nodes.empty()) return {};
    return Error{.code = Code::UnsupportedFeature,
                 .message = fmt::format("the OpenCL device {} ({}) has no f64 (cl_khr_fp64), in which these compute:{}",
                                        device_.address(), device_.name, nodes),
                 .where = {},
                 .hint = "--f64 pairs computes them as two f32 each, with 48 of 53 bits and the range of f32"};
  }

  // Those of one use, with their slots.
  Status makeBuffers(device::Use use, std::vector<OwnMemory>& memory, std::vector<Bound>& bound) const {
    const size_t first = memory.size();
    for (const uint64_t bytes : plan_.buffers[use]) {
      AGLOW_TRY(memory.emplace_back(), driver_->makeBuffer(bytes));
    }
    for (size_t i = 0; i < plan_.slots.size(); ++i)
      if (const Slot& slot = plan_.slots[i]; slot.use == use)
        bound[i] = {memory[first + slot.buffer].get(), slot.offset};
    return {};
  }

  Status placeWeights(TensorPool* pool) {
    std::map<size_t, Tensor> constants;  // by slot
    std::vector<Tensor*> travelling;
    for (Loaded& loaded : programs_)
      for (Region& region : loaded.program.regions)
        if (auto* constant = region.as<ConstantInit>(); constant != nullptr && plan_.inHost(region))
          travelling.push_back(&constant->bytes);
        else if (constant != nullptr)  // the device has its own: nobody reads these again
          constants.emplace(plan_.declared.find(region.name)->second, std::exchange(constant->bytes, {}));
    pin(travelling, pool);
    std::vector<Tensor> tensors;
    for (auto& [slot, tensor] : constants) tensors.push_back(std::move(tensor));
    AGLOW_TRY(WeightMemory memory, WeightMemory::create(driver_, sharesMemory_));
    AGLOW_TRY(weights_, driver_->weights().place(tensors, pool, device_.allocationBytes, memory));
    size_t at = 0;
    for (const auto& [slot, tensor] : constants) {
      const device::WeightStore::Weight& weight = weights_[at++];
      bound_[slot] = {static_cast<Memory>(weight.buffer), weight.offset};
    }
    return {};
  }

  // Weights that are much of the host's memory, or find none that is pinned, travel from where they are.
  void pin(std::span<Tensor* const> travelling, TensorPool* pool) {
    std::vector<Tensor> tensors;
    int64_t bytes = 0;
    for (const Tensor* tensor : travelling) bytes += tensors.emplace_back(*tensor).bytes();
    if (bytes > machineMemory() / 4) return;
    PinnedMemory memory(driver_);
    const auto places = driver_->pinned().place(tensors, pool, device_.allocationBytes, memory);
    for (size_t i = 0; places.ok() && i < tensors.size(); ++i) {
      const auto& [owner, buffer, offset] = (*places)[i];
      *travelling[i] = Tensor(tensors[i].type(), static_cast<const std::byte*>(buffer) + offset, owner);
    }
  }

  Status filled(Context& context) const {
    if (context.run) return {};
    DeviceRun run;
    AGLOW_OK(fill(run));
    context.run = std::move(run);
    return {};
  }

  Status fill(DeviceRun& run) const {
    AGLOW_TRY(run.queue, driver_->makeQueue());
    run.bound = bound_;
    for (const device::Use use : {device::kArena, device::kIo, device::kFaults})
      AGLOW_OK(makeBuffers(use, run.memory, run.bound));
    // Where there is no such memory, the driver copies to and from the caller's.
    if (!sharesMemory_ && plan_.stagingBytes > 0)
      if (auto staging = Staging::create(driver_, plan_.stagingBytes); staging.ok()) run.staging = *std::move(staging);
    size_t checked = 0;
    for (const Loaded& loaded : programs_) {
      checked = std::max(checked, loaded.checked.size());
      if (!loaded.transfers.empty() && !run.copies) {
        AGLOW_TRY(run.copies, CopyQueue::create(*driver_));
      }
      std::vector<OwnKernel>& kernels = run.kernels.emplace_back();
      for (const Step& step : loaded.steps) {
        OwnKernel& kernel = kernels.emplace_back();
        if (step.kind != Step::Kind::Kernel) continue;
        Result<OwnKernel> made = kernels_.make(step.kernel, step.group[0] * step.group[1]);
        if (!made.ok()) return std::move(made).error().at(loaded.nodeOf(step.instr));
        kernel = *std::move(made);
        for (size_t i = 0; i < step.arguments.size(); ++i) AGLOW_OK(setArgument(run, loaded, step, kernel, i));
      }
    }
    run.seen.resize(checked);
    return {};
  }

  Status setArgument(const DeviceRun& run, const Loaded& loaded, const Step& step, const OwnKernel& kernel,
                     size_t argument) const {
    const auto at = static_cast<uint32_t>(2 * argument);
    const Bound& bound = run.bound[step.arguments[argument].slot];
    const uint64_t offset = bound.offset + step.arguments[argument].offset;
    const Api& api = driver_->api();
    int32_t number = api.SetKernelArg(kernel.get(), at, sizeof(Memory), static_cast<const void*>(&bound.memory));
    if (number == kSuccess) number = api.SetKernelArg(kernel.get(), at + 1, sizeof offset, &offset);
    return number == kSuccess ? Status() : fault("clSetKernelArg", number).at(loaded.nodeOf(step.instr));
  }

  Status runOnce(DeviceRun& run, size_t function, HostBytes host, RunObserver* observer) {
    const Loaded& loaded = programs_[function];
    // Times of commands are for a queue of their own: to note them may cost.
    OwnQueue profiling;
    std::optional<CopyQueue> profiledCopies;
    std::optional<Timeline> timeline;
    auto* watcher = dynamic_cast<DeviceObserver*>(observer);
    if (watcher != nullptr) {
      AGLOW_TRY(profiling, driver_->makeQueue(kQueueProfiling));
      timeline.emplace(driver_->api());
      if (run.copies) {
        AGLOW_TRY(profiledCopies, CopyQueue::create(*driver_, kQueueProfiling));
      }
    }
    const Commands commands{.queue = watcher == nullptr ? run.queue.get() : profiling.get(),
                            .copies = profiledCopies ? &*profiledCopies
                                      : run.copies   ? &*run.copies
                                                     : nullptr,
                            .timeline = timeline ? &*timeline : nullptr};
    const std::map<RegionId, std::byte*> wanted = host.outputs;
    stageInputs(run, loaded, host);
    Borrowed borrowed(*driver_);
    Pending pending(*driver_, commands);
    Status done = enqueue(run, commands, function, host, borrowed);
    Status finished = pending.finish();
    // What the device failed in is why no memory was left for a command after it.
    if (!finished.ok() && (done.ok() || done.error().code == Code::OutOfMemory)) return finished;
    AGLOW_OK(std::move(done));
    if (timeline) AGLOW_OK(timeline->tell(*watcher));
    AGLOW_OK(loaded.checkFaults(run.seen));
    if (run.staging != nullptr)
      for (const auto& [id, to] : wanted)
        device::copyBytes(*pool_, to, host.outputs.at(id), loaded.program[id].type.bytes());
    return {};
  }

  // What travels does so from and to pinned memory, if there is some. What the host has, in and out, is in its output.
  void stageInputs(const DeviceRun& run, const Loaded& loaded, HostBytes& host) const {
    const bool stages = run.staging != nullptr;
    const auto staged = [&](RegionId id) { return run.staging->data() + plan_.slotOf(loaded.program[id].name).staged; };
    for (auto& [id, bytes] : host.outputs) bytes = stages ? staged(id) : bytes;
    for (auto& [id, bytes] : host.inputs) {
      const auto output = host.outputs.find(id);
      const bool changes = output != host.outputs.end() && plan_.inHost(loaded.program[id]);
      std::byte* to = changes ? output->second : stages ? staged(id) : bytes;
      device::copyBytes(*pool_, to, bytes, loaded.program[id].type.bytes());
      bytes = to;
    }
  }

  // Inputs and outputs where the caller has them. A placeholder that is both is changed where its output is.
  Status borrow(DeviceRun& run, size_t function, const HostBytes& host, Borrowed& borrowed,
                std::map<RegionId, Memory>& inPlace) const {
    const Loaded& loaded = programs_[function];
    std::map<RegionId, std::byte*> all = host.outputs;
    all.insert(host.inputs.begin(), host.inputs.end());
    for (const auto& [id, bytes] : all) {
      const Region& region = loaded.program[id];
      if (plan_.inHost(region) || region.type.bytes() == 0) continue;
      const size_t number = plan_.declared.find(region.name)->second;
      // Before there is a buffer of them: the driver may take a copy then.
      if (const auto input = host.inputs.find(id); input != host.inputs.end())
        device::copyBytes(*pool_, bytes, input->second, region.type.bytes());
      Memory memory = borrowed.add(bytes, static_cast<uint64_t>(region.type.bytes()));
      const Slot& slot = plan_.slots[number];
      run.bound[number] = memory != nullptr ? Bound{memory, 0} : Bound{ioOf(run, slot), slot.offset};
      if (memory != nullptr) inPlace[id] = memory;
    }
    for (const auto& [step, argument] : loaded.ioArguments)
      AGLOW_OK(setArgument(run, loaded, loaded.steps[step], run.kernels[function][step], argument));
    return {};
  }

  // The device's own memory for inputs and outputs comes after that for intermediate results.
  Memory ioOf(const DeviceRun& run, const Slot& slot) const {
    return run.memory[plan_.buffers[device::kArena].size() + slot.buffer].get();
  }

  Status enqueue(DeviceRun& run, const Commands& commands, size_t function, const HostBytes& host, Borrowed& borrowed) {
    const Loaded& loaded = programs_[function];
    Queue queue = commands.queue;
    const auto faultBytes = static_cast<int64_t>(loaded.checked.size() * sizeof(Fault));
    Memory faults = run.bound[MemoryPlan::kFaultSlot].memory;
    std::fill(run.seen.begin(), run.seen.end(), Fault{});
    AGLOW_OK(driver_->write(queue, faults, 0, run.seen.data(), faultBytes));
    std::map<RegionId, Memory> inPlace;
    if (sharesMemory_) AGLOW_OK(borrow(run, function, host, borrowed, inPlace));
    const auto boundOf = [&](const Region& region) { return run.bound[plan_.declared.find(region.name)->second]; };
    for (const auto& [id, from] : host.inputs)
      if (const Region& region = loaded.program[id]; !plan_.inHost(region) && !inPlace.contains(id))
        AGLOW_OK(driver_->write(queue, boundOf(region).memory, boundOf(region).offset, from, region.type.bytes(),
                                commands.copy("input", region.name, region.type.bytes())));
    if (commands.copies != nullptr) commands.copies->begin(loaded.transfers.size());
    AGLOW_OK(enqueueSteps(run, commands, function, host));
    for (const auto& [id, to] : host.outputs) {
      const Region& region = loaded.program[id];
      if (const auto memory = inPlace.find(id); memory != inPlace.end())
        AGLOW_OK(borrowed.giveBack(queue, memory->second));
      else if (!plan_.inHost(region))
        AGLOW_OK(driver_->read(queue, boundOf(region).memory, boundOf(region).offset, to, region.type.bytes(),
                               commands.copy("output", region.name, region.type.bytes())));
    }
    return driver_->read(queue, faults, 0, run.seen.data(), faultBytes);
  }

  Status startCopy(const DeviceRun& run, const Commands& commands, const Loaded& loaded, size_t number,
                   const HostBytes& host) const {
    const Transfer& transfer = loaded.transfers[number];
    const Region& region = loaded.program[transfer.region];
    const auto* constant = region.as<ConstantInit>();
    const Bound& bound = run.bound[transfer.place.slot];
    // Where the host has the bytes, an output also where it is read again; those to the device are only read.
    const auto& given = host.outputs.contains(transfer.region) ? host.outputs : host.inputs;
    std::byte* begin = constant != nullptr ? constant->bytes.ref().data : given.at(transfer.region);
    const char* what = constant != nullptr ? "weights" : transfer.toDevice ? "input" : "output";
    return commands.copies->start(*driver_, commands.queue, number, transfer, bound.memory,
                                  bound.offset + transfer.place.offset, begin + transfer.offset,
                                  commands.copy(what, region.name, transfer.bytes));
  }

  // In batches, of which the host is at most two ahead of the device: so a run that is asked to stop ends soon, and the
  // device never waits for the host.
  Status enqueueSteps(DeviceRun& run, const Commands& commands, size_t function, const HostBytes& host) {
    const Loaded& loaded = programs_[function];
    const std::vector<OwnKernel>& kernels = run.kernels[function];
    const Api& api = driver_->api();
    const bool stops = StopScope::present();
    OwnEvent before;
    for (size_t i = 0; i < loaded.steps.size(); ++i) {
      const Step& step = loaded.steps[i];
      if (step.kind != Step::Kind::Kernel) {
        AGLOW_OK(step.kind == Step::Kind::Start ? startCopy(run, commands, loaded, step.transfer, host)
                                                : commands.copies->wait(*driver_, commands.queue, step.transfer));
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
      AGLOW_OK(driver_->flush(commands.queue));
      if (before.get() != nullptr) AGLOW_OK(driver_->wait(before.get()));
      AGLOW_OK(StopScope::check());
      before = std::move(batch);
    }
    return {};
  }

  // What all runs share of a state, and how much that is.
  std::pair<Bound, int64_t> stateAt(size_t index) const {
    const Binding& binding = state().bindings()[index];
    return {bound_[plan_.declared.find(binding.name)->second], binding.type.bytes()};
  }
  Status toDevice(size_t index, const std::byte* from) override {
    const auto& [bound, bytes] = stateAt(index);
    Status sent = driver_->write(stateQueue_.get(), bound.memory, bound.offset, from, bytes);
    AGLOW_OK(driver_->finish(stateQueue_.get()));
    return sent;
  }
  Status toHost(size_t index, std::byte* to) override {
    AGLOW_OK(driver_->api().usable());
    const auto& [bound, bytes] = stateAt(index);
    Status asked = driver_->read(stateQueue_.get(), bound.memory, bound.offset, to, bytes);
    AGLOW_OK(driver_->finish(stateQueue_.get()));
    return asked;
  }

  Device device_;
  bool sharesMemory_;
  MemoryPlan plan_;
  std::shared_ptr<Driver> driver_;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<Loaded> programs_;
  KernelSet kernels_;
  OwnQueue stateQueue_;
  std::vector<OwnMemory> memory_;                     // of state
  std::vector<device::WeightStore::Weight> weights_;  // as long as they are used
  std::vector<Bound> bound_;                          // by slot: what all runs share
};

}  // namespace

Result<std::unique_ptr<Executable>> makeExecutable(std::vector<Program> programs, const Device& device,
                                                   const codegen::DeviceShape& shape, int64_t memoryBytes,
                                                   const BackendOptions& options, const std::string& cache) {
  MemoryPlan plan(programs);
  AGLOW_OK(plan.fit(device.limits()));
  RunLimits limits = runLimits(programs, options);
  const uint64_t bytes = memoryBytes > 0 ? static_cast<uint64_t>(memoryBytes) : device.globalBytes;
  limits.contexts = static_cast<int>(std::min<uint64_t>(limits.contexts, plan.contextsIn(bytes)));
  AGLOW_TRY(std::shared_ptr<Driver> driver, Driver::of(device));
  auto executable =
      std::make_unique<DeviceExecutable>(programs, device, std::move(plan), driver,
                                         device.unifiedMemory && memoryBytes == 0, options.threadPool(), limits);
  if (const Status loaded = executable->load(std::move(programs), shape, cache, options.weights.get()); !loaded.ok()) {
    if (loaded.error().code == Code::Device) driver->lose();
    return loaded.error();
  }
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace aglow::opencl
