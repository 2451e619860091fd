// Execution of programs by machine code: bases of memory for each run, and threads that share its steps.
#include "backends/cpu/code/executable.h"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <new>

#include "backends/cpu/kernels/abi.h"
#include "support/progress.h"
#include "support/quote.h"

namespace aglow::codegen {

namespace {

// Where everything is, for one run, and its side of what generated code asks for.
struct CpuContext : RunContext {
  CpuContext(int64_t arenaBytes, ThreadPool& sharedPool, int mostThreads)
      : arena(Type(ElemKind::UInt8, Shape{arenaBytes})), pool(sharedPool), threads(mostThreads) {
    if (threads > 1) runTime.parallelFor = share;
    runTime.parallelContext = runTime.observeContext = this;
  }

  void observeBy(RunObserver* by) {
    observer = by;
    runTime.observe = by == nullptr ? nullptr : observe;
  }

  Tensor arena;                                // of whichever program runs
  std::vector<std::vector<std::byte*>> bases;  // by program; those of placeholders are each run's own
  RunTime runTime;

private:
  static int32_t share(void* context, StepFunction* step, void* const* addresses, int64_t first, int64_t last,
                       int32_t threads) {
    const auto& self = *static_cast<const CpuContext*>(context);
    return self.pool.run({.units = last - first, .threads = threads, .most = self.threads},
                         [&](int thread, int64_t begin, int64_t end) {
                           if (self.observer == nullptr) return step(addresses, first + begin, first + end);
                           part = {.thread = thread, .start = std::chrono::steady_clock::now()};
                           const int32_t status = step(addresses, first + begin, first + end);
                           if (!part.several) self.endPart(self.instr);
                           return status;
                         });
  }

  static void observe(void* context, int32_t number, RunTime::Moment moment) {
    auto& self = *static_cast<CpuContext*>(context);
    const auto instr = static_cast<size_t>(number);
    switch (moment) {
      case RunTime::Begins:
        self.instr = instr;
        return self.observer->begin(instr);
      case RunTime::Ends:
        return self.observer->end(instr);
      case RunTime::PartBegins:
        part.several = true;
        part.start = std::chrono::steady_clock::now();
        return;
      case RunTime::PartEnds:
        return self.endPart(instr);
    }
  }

  void endPart(size_t of) const { observer->part(of, part.thread, part.start, std::chrono::steady_clock::now()); }

  // What this thread does for an observed run.
  struct Part {
    int thread = 0;
    bool several = false;  // of instructions side by side, each told
    RunObserver::Time start;
  };
  static thread_local Part part;

  ThreadPool& pool;
  int threads;  // at most
  RunObserver* observer = nullptr;
  size_t instr = 0;  // that the observer was told of last
};

thread_local CpuContext::Part CpuContext::part;

class CpuExecutable final : public Executable {
public:
  CpuExecutable(ExecutableParts parts, int threads, std::vector<std::shared_ptr<const Tensor>> pooled,
                const RunLimits& limits)
      : Executable(parts.programs, limits),
        code_(std::move(parts.code)),
        target_(std::move(parts.target)),
        cached_(parts.cached),
        arenaBytes_(aglow::arenaBytes(parts.programs)),
        pool_(std::move(parts.pool)),
        threads_(std::min(threads, pool_->threads())),
        pooled_(std::move(pooled)) {
    for (const Region* region : sharedRegions(parts.programs))
      if (region->as<ConstantInit>() != nullptr) weightsBytes_ += aligned(region->type.bytes());
    for (size_t i = 0; i < parts.programs.size(); ++i)
      programs_.push_back({std::move(parts.programs[i]), std::move(parts.memory[i])});
    makeFirstContext();
  }

  ExecutableFacts facts() const override {
    return {.target = target_,
            .threads = threads_,
            .contexts = contexts(),
            .arenaBytes = arenaBytes_,
            .weightsBytes = weightsBytes_,
            .stateBytes = state().bytes(),
            .cached = cached_};
  }

protected:
  std::unique_ptr<RunContext> makeContext() override {
    auto context = std::make_unique<CpuContext>(arenaBytes_, *pool_, threads_);
    for (const Loaded& loaded : programs_) {
      std::vector<std::byte*>& bases = context->bases.emplace_back(static_cast<size_t>(loaded.memory.bases()));
      const auto base = [&](RegionId id) -> std::byte*& { return bases[static_cast<size_t>(loaded.memory[id].base)]; };
      for (const RegionId id : loaded.memory.constants())
        base(id) = loaded.program[id].as<ConstantInit>()->bytes.ref().data;
      for (const RegionId id : loaded.memory.states()) base(id) = state().address(loaded.program[id].name);
      bases[MemoryMap::kActivations] = context->arena.mutableData();
    }
    return context;
  }

  Status execute(RunContext& given, size_t function, std::span<const std::byte* const> inputs,
                 std::span<std::byte* const> outputs, RunObserver* observer) override {
    auto& context = static_cast<CpuContext&>(given);
    const Loaded& loaded = programs_[function];
    std::vector<std::byte*>& bases = context.bases[function];
    size_t nextInput = 0, nextOutput = 0;
    for (size_t i = 0; i < loaded.memory.placeholders().size(); ++i) {
      const Region& region = loaded.program[loaded.memory.placeholders()[i]];
      const Access access = region.as<PlaceholderInit>()->access;
      std::byte*& base = bases[MemoryMap::kFirstPlaceholder + i];
      const std::byte* input = reads(access) ? inputs[nextInput++] : nullptr;
      if (writes(access)) {
        base = outputs[nextOutput++];
        if (input != nullptr && input != base) std::memcpy(base, input, static_cast<size_t>(region.type.bytes()));
      } else {
        base = const_cast<std::byte*>(input);  // read only, as the program says
      }
    }
    context.observeBy(observer);
    const ThreadPool::Caller caller(*pool_);
    const int32_t status = code_.entries[function](bases.data(), &context.runTime);
    if (status == 0) return {};
    const Instr& instr = loaded.program.instrs[static_cast<size_t>(status >> kStatusBits)];
    const std::string where = fmt::format("node {} ({})", quoted(instr.origin), instrName(instr));
    if ((status & ((1 << kStatusBits) - 1)) == cpu::kNoMatrix)
      return Error{.code = Code::Usage,
                   .message = "the system does not let this process use the processor's matrix registers (AMX)",
                   .where = where,
                   .hint = "compile without them: --features -amx-tile"};
    return Error{.code = Code::RuntimeValue, .message = "an index lies outside of its axis", .where = where};
  }

private:
  struct Loaded {
    Program program;  // its constants lie where they are: packed weights in memory, others in the mapped model file
    MemoryMap memory;
  };

  std::vector<Loaded> programs_;
  LoadedCode code_;
  std::string target_;
  bool cached_;
  int64_t weightsBytes_ = 0;
  int64_t arenaBytes_;
  std::shared_ptr<ThreadPool> pool_;
  int threads_;
  std::vector<std::shared_ptr<const Tensor>> pooled_;  // held, so that others find them
};

}  // namespace

void eachSideBySide(ThreadPool& pool, int threads, int64_t count, const std::function<void(int64_t)>& each) {
  std::atomic<int64_t> done = 0;
  reportProgress({"generating code", 0, count});
  pool.run({.units = count, .threads = static_cast<int>(count), .most = threads}, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      each(i);
      reportProgress({"generating code", ++done, count});
    }
    return 0;
  });
}

Result<std::unique_ptr<Executable>> makeExecutable(ExecutableParts parts, const BackendOptions& options) {
  const RunLimits limits = runLimits(parts.programs, options);
  std::vector<std::shared_ptr<const Tensor>> pooled;
  if (options.weights)
    for (Program& program : parts.programs)
      for (Region& region : program.regions)
        if (auto* constant = region.as<ConstantInit>()) {
          pooled.push_back(options.weights->shared(constant->bytes));
          constant->bytes = *pooled.back();
        }
  try {
    return std::unique_ptr<Executable>(
        std::make_unique<CpuExecutable>(std::move(parts), options.threads, std::move(pooled), limits));
  } catch (const std::bad_alloc&) {
    return Error{.code = Code::OutOfMemory, .message = "the model's memory cannot be allocated"};
  }
}

}  // namespace aglow::codegen
