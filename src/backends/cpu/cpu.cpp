// Compilation of a program into memory, and its execution.
#include "backends/cpu/cpu.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "backends/cpu/code/code_cache.h"
#include "backends/cpu/code/memory_map.h"
#include "backends/cpu/code/problem.h"
#include "backends/cpu/kernels/table.h"
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

class CpuExecutable : public Executable {
public:
  CpuExecutable(Program program, MemoryMap memory, codegen::JitCode code, std::string target,
                std::shared_ptr<ThreadPool> pool, std::vector<std::shared_ptr<const Tensor>> pooled, bool cached)
      : program_(std::move(program)),
        memory_(std::move(memory)),
        code_(std::move(code)),
        target_(std::move(target)),
        cached_(cached),
        inputs_(bindingsOf(program_, program_.inputs())),
        outputs_(bindingsOf(program_, program_.outputs())),
        arena_(Type(ElemKind::UInt8, Shape{memory_.activationBytes()})),
        bases_(static_cast<size_t>(memory_.bases())),
        pool_(std::move(pool)),
        pooled_(std::move(pooled)) {
    for (const RegionId id : memory_.constants()) {
      constants_.push_back(initialValue(program_[id]));
      bases_[static_cast<size_t>(memory_[id].base)] = constants_.back().ref().data;
    }
    bases_[MemoryMap::kActivations] = arena_.mutableData();
    if (pool_->threads() > 1) {
      runTime_.parallelFor = [](void* pool, codegen::StepFunction* step, void* const* addresses, int64_t units) {
        return static_cast<ThreadPool*>(pool)->run(
            units, [=](int, int64_t begin, int64_t end) { return step(addresses, begin, end); });
      };
      runTime_.parallelContext = pool_.get();
    }
  }

  std::span<const Binding> inputs() const override { return inputs_; }
  std::span<const Binding> outputs() const override { return outputs_; }
  ExecutableFacts facts() const override {
    return {.target = target_,
            .threads = pool_->threads(),
            .arenaBytes = memory_.activationBytes(),
            .weightsBytes = memory_.constantBytes(),
            .cached = cached_};
  }

protected:
  Status execute(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                 RunObserver* observer) override {
    size_t nextInput = 0, nextOutput = 0;
    for (size_t i = 0; i < memory_.placeholders().size(); ++i) {
      const Region& region = program_[memory_.placeholders()[i]];
      const Access access = region.as<PlaceholderInit>()->access;
      std::byte*& base = bases_[MemoryMap::kFirstPlaceholder + i];
      const std::byte* given = reads(access) ? inputs[nextInput++] : nullptr;
      if (writes(access)) {
        base = outputs[nextOutput++];
        if (given != nullptr && given != base) std::memcpy(base, given, static_cast<size_t>(region.type.bytes()));
      } else {
        base = const_cast<std::byte*>(given);  // read only, as the program says
      }
    }
    runTime_.observeContext = observer;
    runTime_.observe = observer == nullptr ? nullptr : +[](void* told, int32_t instr, int32_t after) {
      auto* to = static_cast<RunObserver*>(told);
      if (after == 0)
        to->begin(static_cast<size_t>(instr), 0);
      else
        to->end(static_cast<size_t>(instr), 0);
    };
    const int32_t status = code_.entry()(bases_.data(), &runTime_);
    if (status == 0) return {};
    const Instr& instr = program_.instrs[static_cast<size_t>(status >> codegen::kStatusBits)];
    return Error{.code = Code::RuntimeValue,
                 .message = "an index lies outside of its axis",
                 .where = fmt::format("node {} ({})", quoted(instr.origin), instrName(instr))};
  }

private:
  Program program_;
  MemoryMap memory_;
  codegen::JitCode code_;
  std::string target_;
  bool cached_;
  std::vector<Binding> inputs_, outputs_;
  std::vector<Tensor> constants_;  // where they are: packed weights in memory, others in the mapped model file
  Tensor arena_;
  std::vector<std::byte*> bases_;
  codegen::RunTime runTime_;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<std::shared_ptr<const Tensor>> pooled_;  // held, so that others find them
};

}  // namespace

Result<std::shared_ptr<const CpuBackend>> CpuBackend::create(const codegen::TargetOptions& options) {
  AGLOW_TRY(codegen::Target target, codegen::Target::create(options));
  return std::shared_ptr<const CpuBackend>(new CpuBackend(std::move(target)));
}

// Loops are written for what is data-parallel; everything else that computes has a row in the kernel table, or is
// refused with the reason of the last row. A file may hold target operators of another machine, so these are asked for
// as well.
Decision CpuBackend::supports(const Node& node) const {
  const OpKind kind = node.def().kind;
  if (node.def().isDataParallel() || kind == OpKind::View || kind == OpKind::Storage) return Decision::yes();
  std::vector<const Type*> in, out;
  for (int i = 0; i < node.inputCount(); ++i) in.push_back(node.input(i) ? &node.input(i).type() : nullptr);
  for (int i = 0; i < node.resultCount(); ++i) {
    const bool absent = mayBeAbsent(node.def(), static_cast<size_t>(i)) && node.useCount(i) == 0;
    out.push_back(absent ? nullptr : &node.type(i));
  }
  return cpu::servesKernel({node.attrs(), in, out}, target_.shape());
}

std::optional<VectorLayout> CpuBackend::vectorLayout() const { return VectorLayout{.lanes = target_.shape().lanes}; }

int64_t CpuBackend::scratchBytes(const Program& program, const Instr& instr) const {
  if (instr.kind != Instr::Kind::Compute && instr.kind != Instr::Kind::Fused) return 0;
  const std::span<const Instr> body = codegen::bodyOf(instr);
  if (codegen::isLoop(body)) return 0;
  const codegen::InstrProblem problem(program, body.front());
  return cpu::planKernel(problem.problem(), target_.shape()).scratchBytes;
}

Result<std::unique_ptr<Executable>> CpuBackend::compile(Program program, const BackendOptions& options) const {
  AGLOW_OK(checkMemory(program, options));
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
  MemoryMap memory(program);
  const char* perf = std::getenv("AGLOW_PERF");
  const bool named = perf != nullptr && std::string_view(perf) == "1";
  const codegen::CodeOptions codeOptions{
      .name = kEntry, .threads = options.threads > 1, .observed = true, .apart = named};
  const codegen::CodeCache cache(options.cache);
  const std::string source = options.cache.empty() ? "" : codegen::codeSource(program, target_, codeOptions);
  std::optional<std::string> object = cache.find(source);
  const bool cached = object.has_value();
  if (!cached) {
    AGLOW_TRY(object, codegen::generateCode(program, memory, target_, codeOptions));
    cache.keep(source, *object);
  }
  AGLOW_TRY(codegen::JitCode code, codegen::JitCode::load(*object, kEntry, named));
  const std::string name = fmt::format("{} {}", target_.triple(), target_.cpu());
  std::vector<std::shared_ptr<const Tensor>> pooled;
  if (options.weights)
    for (Region& region : program.regions)
      if (auto* constant = std::get_if<ConstantInit>(&region.source)) {
        pooled.push_back(options.weights->shared(constant->bytes));
        constant->bytes = *pooled.back();
      }
  std::shared_ptr<ThreadPool> pool = options.pool ? options.pool : std::make_shared<ThreadPool>(options.threads);
  try {
    return std::unique_ptr<Executable>(std::make_unique<CpuExecutable>(
        std::move(program), std::move(memory), std::move(code), name, std::move(pool), std::move(pooled), cached));
  } catch (const std::bad_alloc&) {
    return Error{.code = Code::OutOfMemory, .message = "the model's memory cannot be allocated"};
  }
}

}  // namespace aglow
