// Compilation of a program into memory, and its execution.
#include "backends/cpu/cpu.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "backends/cpu/code/code_cache.h"
#include "backends/cpu/code/memory_map.h"
#include "backends/cpu/code/plans.h"
#include "backends/cpu/kernels/table.h"
#include "backends/cpu/layout/layout.h"
#include "backends/cpu/llvm/generate.h"
#include "backends/cpu/llvm/jit.h"
#include "support/quote.h"
#include "support/thread_pool.h"

namespace aglow {

namespace {

using codegen::MemoryMap;

constexpr const char* kEntry = "model";
constexpr const char* kWriteFiles =
    "write it to files with `aglow compile --emit bundle`, for a machine that can run it";

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
  codegen::RunTime runTime;

private:
  static int32_t share(void* context, codegen::StepFunction* step, void* const* addresses, int64_t first, int64_t last,
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

  static void observe(void* context, int32_t number, codegen::RunTime::Moment moment) {
    auto& self = *static_cast<CpuContext*>(context);
    const auto instr = static_cast<size_t>(number);
    switch (moment) {
      case codegen::RunTime::Begins:
        self.instr = instr;
        return self.observer->begin(instr);
      case codegen::RunTime::Ends:
        return self.observer->end(instr);
      case codegen::RunTime::PartBegins:
        part.several = true;
        part.start = std::chrono::steady_clock::now();
        return;
      case codegen::RunTime::PartEnds:
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
  CpuExecutable(std::vector<Program> programs, std::vector<MemoryMap> memory, codegen::JitCode code, std::string target,
                std::shared_ptr<ThreadPool> pool, int threads, std::vector<std::shared_ptr<const Tensor>> pooled,
                bool cached, const RunLimits& limits)
      : Executable(programs, limits),
        code_(std::move(code)),
        target_(std::move(target)),
        cached_(cached),
        arenaBytes_(aglow::arenaBytes(programs)),
        pool_(std::move(pool)),
        threads_(std::min(threads, pool_->threads())),
        pooled_(std::move(pooled)) {
    for (const Region* region : sharedRegions(programs))
      if (region->as<ConstantInit>() != nullptr) weightsBytes_ += codegen::aligned(region->type.bytes());
    for (size_t i = 0; i < programs.size(); ++i) programs_.push_back({std::move(programs[i]), std::move(memory[i])});
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
    const int32_t status = code_.entry(function)(bases.data(), &context.runTime);
    if (status == 0) return {};
    const Instr& instr = loaded.program.instrs[static_cast<size_t>(status >> codegen::kStatusBits)];
    return Error{.code = Code::RuntimeValue,
                 .message = "an index lies outside of its axis",
                 .where = fmt::format("node {} ({})", quoted(instr.origin), instrName(instr))};
  }

private:
  struct Loaded {
    Program program;  // its constants lie where they are: packed weights in memory, others in the mapped model file
    MemoryMap memory;
  };

  std::vector<Loaded> programs_;
  codegen::JitCode code_;
  std::string target_;
  bool cached_;
  int64_t weightsBytes_ = 0;
  int64_t arenaBytes_;
  std::shared_ptr<ThreadPool> pool_;
  int threads_;
  std::vector<std::shared_ptr<const Tensor>> pooled_;  // held, so that others find them
};

}  // namespace

Result<std::shared_ptr<const CpuBackend>> CpuBackend::create(const codegen::TargetOptions& options) {
  AGLOW_TRY(codegen::Target target, codegen::Target::create(options));
  return std::shared_ptr<const CpuBackend>(new CpuBackend(std::move(target)));
}

// Loops are written for what is data-parallel; everything else that computes has a row in the kernel table, or is
// refused with the reason of the last row.
Decision CpuBackend::supports(const Node& node) const {
  const OpDef& op = node.def();
  if (op.isDataParallel() || op.kind == OpKind::View || op.kind == OpKind::Storage) return Decision::yes();
  std::vector<const Type*> in, out;
  for (int i = 0; i < node.inputCount(); ++i) in.push_back(node.input(i) ? &node.input(i).type() : nullptr);
  for (int i = 0; i < node.resultCount(); ++i) {
    const bool absent = mayBeAbsent(op, static_cast<size_t>(i)) && node.useCount(i) == 0;
    out.push_back(absent ? nullptr : &node.type(i));
  }
  const cpu::KernelChoice choice = cpu::chooseKernel({node.attrs(), in, out}, target_.shape());
  return choice.row != nullptr ? Decision::yes() : Decision::no(choice.reason());
}

Result<std::optional<Plan>> CpuBackend::plan(const Program& program, const Instr& instr) const {
  AGLOW_TRY(Plan plan, cpu::planInstr(program, instr, target_.shape()));
  return std::optional<Plan>(std::move(plan));
}

void CpuBackend::changePhases(PhaseList& phases) const {
  phases.insertAfter("optimize-core", layoutPhase({.lanes = target_.shape().lanes}));
  phases.insertAfter("irgen", planPhase());
  phases.insertAfter("plan", fusePhase(fusing_));
}

Result<std::unique_ptr<Executable>> CpuBackend::compile(std::vector<Program> programs,
                                                        const BackendOptions& options) const {
  AGLOW_OK(checkMemory(programs, options));
  if (!target_.isHost())
    return Error{.code = Code::Usage,
                 .message = fmt::format("code for {} cannot run on this machine", target_.triple()),
                 .where = {},
                 .hint = kWriteFiles};
  if (const std::vector<std::string> missing = codegen::missingFeatures(target_); !missing.empty())
    return Error{.code = Code::Usage,
                 .message = fmt::format("this processor lacks instructions of {} that the code may use: {}",
                                        target_.cpu(), fmt::join(missing, " ")),
                 .where = {},
                 .hint = kWriteFiles};
  const RunLimits limits = runLimits(programs, options);
  std::vector<MemoryMap> memory;
  for (const Program& program : programs) memory.emplace_back(program);
  const char* perf = std::getenv("AGLOW_PERF");
  const bool named = perf != nullptr && std::string_view(perf) == "1";
  const codegen::CodeOptions codeOptions{
      .name = kEntry, .threads = options.threads > 1, .observed = true, .apart = named};
  const codegen::CodeCache cache(options.cache);
  const std::string source = options.cache.empty() ? "" : codegen::codeSource(programs, target_, codeOptions);
  std::optional<std::string> object = cache.find(source);
  const bool cached = object.has_value();
  if (!cached) {
    AGLOW_TRY(object, codegen::generateCode(programs, memory, target_, codeOptions));
    cache.keep(source, *object);
  }
  std::vector<std::string> entries;
  for (size_t i = 0; i < programs.size(); ++i) entries.push_back(codegen::entryName(codeOptions, i));
  AGLOW_TRY(codegen::JitCode code, codegen::JitCode::load(*object, entries, named));
  const std::string name = fmt::format("{} {}", target_.triple(), target_.cpu());
  std::vector<std::shared_ptr<const Tensor>> pooled;
  if (options.weights)
    for (Program& program : programs)
      for (Region& region : program.regions)
        if (auto* constant = region.as<ConstantInit>()) {
          pooled.push_back(options.weights->shared(constant->bytes));
          constant->bytes = *pooled.back();
        }
  std::shared_ptr<ThreadPool> pool = options.pool ? options.pool : ThreadPool::ofProcess(options.threads);
  try {
    return std::unique_ptr<Executable>(
        std::make_unique<CpuExecutable>(std::move(programs), std::move(memory), std::move(code), name, std::move(pool),
                                        options.threads, std::move(pooled), cached, limits));
  } catch (const std::bad_alloc&) {
    return Error{.code = Code::OutOfMemory, .message = "the model's memory cannot be allocated"};
  }
}

}  // namespace aglow
