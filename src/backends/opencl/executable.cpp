// Execution on a device: everything has its place in one of five buffers, kernels have their arguments from the
// beginning, and a run is one row of commands without a word from the host in between.
#include "backends/opencl/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>

#include "backends/opencl/kernels.h"
#include "inst/fused.h"
#include "support/quote.h"
#include "support/sizes.h"

namespace aglow::opencl {

namespace {

enum BufferId : uint8_t { kArena, kWeights, kState, kIo, kFaults, kBuffers };
constexpr const char* kBufferNames[] = {"intermediate results", "weights", "state", "inputs and outputs",
                                        "faults of kernels"};

struct Place {
  BufferId buffer = kArena;
  uint64_t offset = 0;
};

// Of an instruction that looks at indices: whether one lay outside of its axis, and which.
struct Fault {
  int32_t seen = 0;
  int32_t unused = 0;
  int64_t index = 0;
};

// Declared regions lie one after the other, in one buffer for each use.
struct MemoryPlan {
  std::array<uint64_t, kBuffers> bytes = {};
  std::map<std::string, Place, std::less<>> declared;

  explicit MemoryPlan(std::span<const Program> programs) {
    for (const Program& program : programs)
      bytes[kArena] = std::max(bytes[kArena], static_cast<uint64_t>(program.arenaBytes));
    for (const Region* region : sharedRegions(programs)) {
      const BufferId buffer = region->as<ConstantInit>() != nullptr ? kWeights : region->isState() ? kState : kIo;
      declared[region->name] = {buffer, bytes[buffer]};
      bytes[buffer] += static_cast<uint64_t>(alignUp(region->type.bytes(), Program::kAlignment));
    }
  }

  Place placeOf(const Program& program, const Extent& extent) const {
    const Region& root = program[extent.root];
    const auto begin = static_cast<uint64_t>(extent.begin);
    if (const auto* allocated = root.as<Allocated>()) return {kArena, static_cast<uint64_t>(allocated->offset) + begin};
    const Place& place = declared.find(root.name)->second;
    return {place.buffer, place.offset + begin};
  }

  Status check(const Device& device) const {
    uint64_t all = 0;
    for (size_t i = 0; i < kBuffers; ++i) {
      all += bytes[i];
      if (bytes[i] > device.allocationBytes)
        return Error{
            .code = Code::TooLarge,
            .message = fmt::format("{} bytes are needed for {}; one buffer of the device {} ({}) has at most {}",
                                   bytes[i], kBufferNames[i], device.address(), device.name, device.allocationBytes)};
    }
    if (all > device.globalBytes)
      return Error{.code = Code::TooLarge,
                   .message = fmt::format("{} bytes are needed on the device {} ({}), which has {}", all,
                                          device.address(), device.name, device.globalBytes)};
    return {};
  }
};

// One kernel of an instruction.
struct Step {
  size_t instr = 0;
  size_t kernel = 0;
  std::array<size_t, 2> items = {1, 1}, group = {1, 1};
  std::vector<Place> arguments;
};

struct Loaded {
  Program program;
  std::vector<Step> steps;
  std::vector<size_t> checked;  // instructions with a fault of their own, by its number
  bool readsState = false, writesState = false;
};

// What a run has for itself.
struct DeviceRun : RunContext {
  Status made;
  OwnQueue queue;
  OwnMemory arena, io, faults;
  std::vector<std::vector<OwnKernel>> kernels;  // by program, by step
  std::vector<Fault> seen;
};

class DeviceExecutable final : public Executable {
public:
  DeviceExecutable(std::vector<Program> programs, const Device& device, MemoryPlan plan, const RunLimits& limits)
      : Executable(programs, limits), device_(device), api_(*device.api), plan_(std::move(plan)) {
    for (Program& program : programs) programs_.emplace_back().program = std::move(program);
  }

  Status load(const codegen::DeviceShape& shape) {
    for (Loaded& loaded : programs_) prepare(loaded, shape);
    int32_t number = kSuccess;
    Context context = api_.CreateContext(nullptr, 1, &device_.id, nullptr, nullptr, &number);
    AGLOW_TRY(context_, owned<OwnContext>(api_, "clCreateContext", context, number));
    AGLOW_OK(kernels_.build(device_, context_.get()));
    AGLOW_TRY(OwnQueue queue, makeQueue());
    AGLOW_TRY(weights_, makeBuffer(plan_.bytes[kWeights]));
    AGLOW_TRY(state_, makeBuffer(plan_.bytes[kState]));
    std::map<std::string_view, bool> written;
    for (const Loaded& loaded : programs_)
      for (const Region& region : loaded.program.regions) {
        const auto* constant = region.as<ConstantInit>();
        if (constant == nullptr || region.type.bytes() == 0 || !written.try_emplace(region.name, true).second) continue;
        AGLOW_OK(write(queue.get(), weights_.get(), plan_.declared.find(region.name)->second.offset,
                       constant->bytes.data(), region.type.bytes()));
      }
    AGLOW_OK(finish(queue.get()));
    // The device has its own: nobody reads them here again.
    for (Loaded& loaded : programs_)
      for (Region& region : loaded.program.regions)
        if (auto* constant = region.as<ConstantInit>()) constant->bytes = {};
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
    Status done = enqueue(run, function, inputs, outputs, observer);
    // Even where a command was refused: those before it may still use the caller's memory.
    const int32_t number = api_.Finish(run.queue.get());
    AGLOW_OK(std::move(done));
    if (number != kSuccess) return fault("clFinish", number);
    return checkFaults(run, programs_[function]);
  }

private:
  void prepare(Loaded& loaded, const codegen::DeviceShape& shape) {
    const Program& program = loaded.program;
    const std::vector<Extent> extents = program.extents();
    const SharedTurns::Use use = stateUse(program);
    loaded.readsState = use != SharedTurns::Use::None;
    loaded.writesState = use == SharedTurns::Use::Writes;
    const auto placeOf = [&](RegionId id) { return plan_.placeOf(program, extents[static_cast<size_t>(id)]); };
    for (size_t i = 0; i < program.instrs.size(); ++i) {
      const Instr& instr = program.instrs[i];
      if (instr.isMarker() || instr.kind == Instr::Kind::CopyWait) continue;
      for (const codegen::Launch& launch : codegen::launchesOf(program, instr, shape)) {
        Step step{.instr = i, .kernel = kernels_.add(launch.text)};
        for (size_t axis = 0; axis < 2; ++axis) {
          step.items[axis] = static_cast<size_t>(launch.items[axis]);
          step.group[axis] = static_cast<size_t>(launch.group[axis]);
        }
        for (const int argument : launch.arguments) {
          if (argument == codegen::Launch::kFault) {
            if (loaded.checked.empty() || loaded.checked.back() != i) loaded.checked.push_back(i);
            step.arguments.push_back({kFaults, (loaded.checked.size() - 1) * sizeof(Fault)});
          } else {
            step.arguments.push_back(placeOf(argument == codegen::Launch::kPredicate
                                                 ? instr.predicate
                                                 : instr.operands[static_cast<size_t>(argument)].region));
          }
        }
        loaded.steps.push_back(std::move(step));
      }
    }
    plan_.bytes[kFaults] = std::max<uint64_t>(plan_.bytes[kFaults], loaded.checked.size() * sizeof(Fault));
  }

  Result<OwnQueue> makeQueue() const {
    int32_t number = kSuccess;
    Queue queue = api_.CreateCommandQueue(context_.get(), device_.id, 0, &number);
    return owned<OwnQueue>(api_, "clCreateCommandQueue", queue, number);
  }

  Result<OwnMemory> makeBuffer(uint64_t bytes) const {
    int32_t number = kSuccess;
    Memory memory =
        api_.CreateBuffer(context_.get(), kReadWrite, std::max<uint64_t>(bytes, Program::kAlignment), nullptr, &number);
    return owned<OwnMemory>(api_, "clCreateBuffer", memory, number);
  }

  Status write(Queue queue, Memory to, uint64_t offset, const void* from, int64_t bytes) const {
    if (bytes == 0) return {};
    const int32_t number =
        api_.EnqueueWriteBuffer(queue, to, 0, offset, static_cast<size_t>(bytes), from, 0, nullptr, nullptr);
    return number == kSuccess ? Status() : fault("clEnqueueWriteBuffer", number);
  }

  Status read(Queue queue, Memory from, uint64_t offset, void* to, int64_t bytes) const {
    if (bytes == 0) return {};
    const int32_t number =
        api_.EnqueueReadBuffer(queue, from, 0, offset, static_cast<size_t>(bytes), to, 0, nullptr, nullptr);
    return number == kSuccess ? Status() : fault("clEnqueueReadBuffer", number);
  }

  Status finish(Queue queue) const {
    const int32_t number = api_.Finish(queue);
    return number == kSuccess ? Status() : fault("clFinish", number);
  }

  Status fillContext(DeviceRun& run) {
    AGLOW_TRY(run.queue, makeQueue());
    AGLOW_TRY(run.arena, makeBuffer(plan_.bytes[kArena]));
    AGLOW_TRY(run.io, makeBuffer(plan_.bytes[kIo]));
    AGLOW_TRY(run.faults, makeBuffer(plan_.bytes[kFaults]));
    const std::array<Memory, kBuffers> buffers = {run.arena.get(), weights_.get(), state_.get(), run.io.get(),
                                                  run.faults.get()};
    size_t checked = 0;
    for (const Loaded& loaded : programs_) {
      checked = std::max(checked, loaded.checked.size());
      std::vector<OwnKernel>& kernels = run.kernels.emplace_back();
      for (const Step& step : loaded.steps) {
        AGLOW_TRY(OwnKernel kernel, kernels_.make(step.kernel));
        uint32_t at = 0;
        for (const Place& place : step.arguments) {
          int32_t number = api_.SetKernelArg(kernel.get(), at++, sizeof(Memory), &buffers[place.buffer]);
          if (number == kSuccess) number = api_.SetKernelArg(kernel.get(), at++, sizeof place.offset, &place.offset);
          if (number != kSuccess) return fault("clSetKernelArg", number).at(nodeOf(loaded, step.instr));
        }
        kernels.push_back(std::move(kernel));
      }
    }
    run.seen.resize(checked);
    return {};
  }

  static std::string nodeOf(const Loaded& loaded, size_t number) {
    const Instr& instr = loaded.program.instrs[number];
    return fmt::format("node {} ({})", quoted(instr.origin), instrName(bodyOf(instr).front()));
  }

  Status enqueue(DeviceRun& run, size_t function, std::span<const std::byte* const> inputs,
                 std::span<std::byte* const> outputs, RunObserver* observer) {
    const Loaded& loaded = programs_[function];
    Queue queue = run.queue.get();
    const auto faultBytes = static_cast<int64_t>(loaded.checked.size() * sizeof(Fault));
    std::fill(run.seen.begin(), run.seen.end(), Fault{});
    AGLOW_OK(write(queue, run.faults.get(), 0, run.seen.data(), faultBytes));
    const auto declared = [&](const Region& region) { return plan_.declared.find(region.name)->second.offset; };
    size_t next = 0;
    for (const Region& region : loaded.program.regions)
      if (const auto* placeholder = region.as<PlaceholderInit>(); placeholder != nullptr && reads(placeholder->access))
        AGLOW_OK(write(queue, run.io.get(), declared(region), inputs[next++], region.type.bytes()));
    if (loaded.readsState) AGLOW_OK(moveState(queue, true));
    AGLOW_OK(enqueueSteps(run, function, observer));
    if (loaded.writesState) AGLOW_OK(moveState(queue, false));
    next = 0;
    for (const Region& region : loaded.program.regions)
      if (const auto* placeholder = region.as<PlaceholderInit>(); placeholder != nullptr && writes(placeholder->access))
        AGLOW_OK(read(queue, run.io.get(), declared(region), outputs[next++], region.type.bytes()));
    return read(queue, run.faults.get(), 0, run.seen.data(), faultBytes);
  }

  Status moveState(Queue queue, bool toDevice) {
    for (const Binding& binding : state().bindings()) {
      const uint64_t offset = plan_.declared.find(binding.name)->second.offset;
      std::byte* bytes = state().address(binding.name);
      AGLOW_OK(toDevice ? write(queue, state_.get(), offset, bytes, binding.type.bytes())
                        : read(queue, state_.get(), offset, bytes, binding.type.bytes()));
    }
    return {};
  }

  Status enqueueSteps(DeviceRun& run, size_t function, RunObserver* observer) {
    const Loaded& loaded = programs_[function];
    const std::vector<OwnKernel>& kernels = run.kernels[function];
    Queue queue = run.queue.get();
    if (observer != nullptr) AGLOW_OK(finish(queue));
    for (size_t i = 0; i < loaded.steps.size(); ++i) {
      const Step& step = loaded.steps[i];
      const bool first = i == 0 || loaded.steps[i - 1].instr != step.instr;
      const bool last = i + 1 == loaded.steps.size() || loaded.steps[i + 1].instr != step.instr;
      if (observer != nullptr && first) observer->begin(step.instr);
      const int32_t number = api_.EnqueueNDRangeKernel(queue, kernels[i].get(), 2, nullptr, step.items.data(),
                                                       step.group.data(), 0, nullptr, nullptr);
      if (number != kSuccess) return fault("clEnqueueNDRangeKernel", number).at(nodeOf(loaded, step.instr));
      if (observer != nullptr && last) {
        AGLOW_OK(finish(queue));
        observer->end(step.instr);
      }
    }
    return {};
  }

  Status checkFaults(const DeviceRun& run, const Loaded& loaded) const {
    for (size_t i = 0; i < loaded.checked.size(); ++i) {
      if (run.seen[i].seen == 0) continue;
      const Instr& instr = bodyOf(loaded.program.instrs[loaded.checked[i]]).front();
      const Shape& data = loaded.program[instr.inputs()[0].region].type.shape();
      const auto& declared = instr.attrs.op().attrs;
      const bool chosen =
          std::any_of(declared.begin(), declared.end(), [](const AttrDef& attr) { return attr.name == "axis"; });
      const int64_t axis = chosen ? instr.attrs.integer("axis") : 0;
      return Error{.code = Code::RuntimeValue,
                   .message = fmt::format("index {} lies outside of axis {}, whose extent is {}", run.seen[i].index,
                                          axis, data[static_cast<int>(axis)])}
          .at(nodeOf(loaded, loaded.checked[i]));
    }
    return {};
  }

  Device device_;
  const Api& api_;
  MemoryPlan plan_;
  std::vector<Loaded> programs_;
  OwnContext context_;
  KernelSet kernels_;
  OwnMemory weights_, state_;
};

}  // namespace

Result<std::unique_ptr<Executable>> makeExecutable(std::vector<Program> programs, const Device& device,
                                                   const codegen::DeviceShape& shape, const BackendOptions& options) {
  MemoryPlan plan(programs);
  AGLOW_OK(plan.check(device));
  const RunLimits limits = runLimits(programs, options);
  auto executable = std::make_unique<DeviceExecutable>(std::move(programs), device, std::move(plan), limits);
  AGLOW_OK(executable->load(shape));
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace aglow::opencl
