// Compilation of programs into memory.
#include "backends/cpu/cpu.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "backends/cpu/code/chains.h"
#include "backends/cpu/code/executable.h"
#include "backends/cpu/code/memory_map.h"
#include "backends/cpu/code/plans.h"
#include "backends/cpu/kernels/table.h"
#include "backends/cpu/layout/block_weights.h"
#include "backends/cpu/layout/bytes.h"
#include "backends/cpu/layout/layout.h"
#include "backends/cpu/llvm/generate.h"
#include "backends/cpu/llvm/jit.h"
#include "inst/operand_types.h"
#include "support/thread_pool.h"

namespace aglow {

namespace {

constexpr const char* kEntry = "model";
constexpr const char* kWriteFiles =
    "write it to files with `aglow compile --emit bundle`, for a machine that can run it";

}  // namespace

Result<std::shared_ptr<const CpuBackend>> CpuBackend::create(const codegen::TargetOptions& options) {
  AGLOW_TRY(codegen::Target target, codegen::Target::create(options));
  return std::shared_ptr<const CpuBackend>(new CpuBackend(std::move(target)));
}

// Loops are written for what is data-parallel; everything else that computes has a row in the kernel table, or is
// refused with the reason of the last row.
static VectorLayout layoutOf(const cpu::Machine& machine) {
  return {.lanes = machine.lanes, .halves = machine.halves, .fastHalves = machine.fastHalves, .matrix = machine.matrix};
}

Decision CpuBackend::supports(const Node& node) const {
  const OpDef& op = node.def();
  if (op.isDataParallel() || op.kind == OpKind::View || op.kind == OpKind::Storage) return Decision::yes();
  if (isBlockWeights(node)) return Decision::yes();  // for the layout phase to pack
  const OperandTypes types(node);
  const cpu::KernelChoice choice = cpu::chooseKernel({node.attrs(), types.in, types.out}, target_.shape());
  return choice.row != nullptr ? Decision::yes() : Decision::no(choice.reason());
}

Decision CpuBackend::quantizes(const Node& product) const { return multipliesBytes(product, target_.shape()); }

Result<std::optional<Plan>> CpuBackend::plan(const Program& program, const Instr& instr) const {
  AGLOW_TRY(Plan plan, cpu::planInstr(program, instr, target_.shape()));
  return std::optional<Plan>(std::move(plan));
}

void CpuBackend::changePhases(PhaseList& phases) const {
  phases.insertAfter("optimize-core", layoutPhase(layoutOf(target_.shape())));
  phases.insertAfter("irgen", planPhase());
  phases.insertAfter("plan", fusePhase(fusing_));
  phases.insertAfter("memory", chainPhase(target_.shape()));
}

Status CpuBackend::checkHost() const {
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
  return {};
}

Result<std::unique_ptr<Executable>> CpuBackend::compile(std::vector<Program> programs,
                                                        const BackendOptions& options) const {
  AGLOW_OK(checkMemory(programs, options));
  AGLOW_OK(checkHost());
  std::vector<codegen::MemoryMap> memory;
  for (const Program& program : programs) memory.emplace_back(program);
  const bool named = isNamed();
  const codegen::CodeOptions codeOptions{
      .name = kEntry, .threads = options.threads > 1, .observed = true, .apart = named};
  std::shared_ptr<ThreadPool> pool = options.threadPool();
  AGLOW_TRY(const std::vector<std::string> objects,
            codegen::generateObjects(programs, memory, target_, codeOptions, [&](int64_t count, const auto& each) {
              codegen::eachSideBySide(*pool, options.threads, count, each);
            }));
  std::vector<std::string> entries;
  for (size_t i = 0; i < programs.size(); ++i) entries.push_back(codegen::entryName(codeOptions, i));
  AGLOW_TRY(codegen::LoadedCode code, codegen::loadObjects(objects, entries, named));
  return codegen::makeExecutable({.programs = std::move(programs),
                                  .memory = std::move(memory),
                                  .code = std::move(code),
                                  .target = fmt::format("{} {}", target_.triple(), target_.cpu()),
                                  .pool = std::move(pool),
                                  .cached = false},
                                 options);
}

bool CpuBackend::isNamed() {
  const char* perf = std::getenv("AGLOW_PERF");
  return perf != nullptr && std::string_view(perf) == "1";
}

}  // namespace aglow
