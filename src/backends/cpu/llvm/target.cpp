// Finding LLVM's description of a target, and what it says about vectors.
#include "backends/cpu/llvm/target.h"

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>
#include <unistd.h>

#include <map>
#include <mutex>

#include "backends/cpu/code/targets.h"
#include "backends/cpu/llvm/guard.h"

namespace aglow::codegen {

namespace {

const TestedTarget* testedTarget(const llvm::Triple& triple, const llvm::Triple& host) {
  // Of C libraries, this machine's may be another.
  const bool common = triple.getEnvironment() == llvm::Triple::GNU || !triple.hasEnvironment();
  if (!common && triple.getEnvironment() != host.getEnvironment()) return nullptr;
  if (!triple.isOSLinux() || !triple.isOSBinFormatELF() || triple.isArm64e() || triple.isWindowsArm64EC())
    return nullptr;
  for (const TestedTarget& row : testedTargets())
    if (row.architecture() == std::string_view(llvm::Triple::getArchTypeName(triple.getArch()))) return &row;
  return nullptr;
}

// Those of the tested targets alone: a library that has LLVM in it has no others.
#define AGLOW_INITIALIZE(name)        \
  LLVMInitialize##name##TargetInfo(); \
  LLVMInitialize##name##Target();     \
  LLVMInitialize##name##TargetMC();   \
  LLVMInitialize##name##AsmPrinter(); \
  LLVMInitialize##name##AsmParser()

void initializeOnce() {
  static std::once_flag flag;
  std::call_once(flag, [] {
    AGLOW_INITIALIZE(X86);
    AGLOW_INITIALIZE(AArch64);
    AGLOW_INITIALIZE(RISCV);
  });
}
#undef AGLOW_INITIALIZE

std::string hostFeatures() {
  std::map<std::string, bool> sorted;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) sorted[feature.getKey().str()] = feature.getValue();
  std::string text;
  for (const auto& [name, on] : sorted) text += fmt::format("{}{}{}", text.empty() ? "" : ",", on ? '+' : '-', name);
  return text;
}

int64_t cacheBytes(int name, int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

Error badTarget(std::string message, std::string hint) {
  return {.code = Code::Usage, .message = std::move(message), .hint = std::move(hint)};
}

Error untested(const std::string& triple) {
  std::vector<std::string_view> names;
  for (const TestedTarget& row : testedTargets()) names.emplace_back(row.triple);
  return badTarget(fmt::format("'{}' is not a target that code is generated for", triple),
                   fmt::format("--target takes {}; for all others --emit c writes C, which their compilers take",
                               fmt::join(names, ", ")));
}

// Unknown names are only warned about by LLVM, on standard error; here they end the compilation.
Status checkNames(const llvm::MCSubtargetInfo& info, const TargetOptions& options, const std::string& cpu) {
  if (!info.isCPUStringValid(cpu))
    return badTarget(fmt::format("'{}' is not a processor of {}", cpu, info.getTargetTriple().getArchName().str()),
                     "`llc --mtriple=TRIPLE --mcpu=help` lists them");
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef(options.features).split(names, ',', -1, false);
  for (llvm::StringRef name : names) {
    const bool signedName = name.starts_with("+") || name.starts_with("-");
    const auto known = [&](const llvm::SubtargetFeatureKV& f) { return f.Key == name.drop_front(); };
    const auto all = info.getAllProcessorFeatures();
    if (!signedName || std::none_of(all.begin(), all.end(), known))
      return badTarget(
          fmt::format("'{}' is not a feature of {}", name.str(), info.getTargetTriple().getArchName().str()),
          "write --features +avx2,-avx512f; `llc --mtriple=TRIPLE --mattr=help` lists them");
  }
  return {};
}

}  // namespace

bool Target::has(const std::string& feature) const {
  return machine_->getMCSubtargetInfo()->checkFeatures("+" + feature);
}

Result<Target> Target::create(const TargetOptions& options) {
  Target target;
  AGLOW_OK(guarded([&] { return target.find(options); }));
  return target;
}

Status Target::find(const TargetOptions& options) {
  initializeOnce();
  options_ = options;
  const llvm::Triple host(llvm::sys::getDefaultTargetTriple());
  const llvm::Triple triple(options.triple.empty() ? host.str() : llvm::Triple::normalize(options.triple));
  triple_ = triple.str();
  host_ = triple.getArch() == host.getArch() && triple.getOS() == host.getOS();

  const TestedTarget* tested = testedTarget(triple, host);
  std::string why;
  const llvm::Target* found = tested == nullptr ? nullptr : llvm::TargetRegistry::lookupTarget(triple_, why);
  if (found == nullptr) return untested(triple_);
  const bool native = options.cpu == "native" || (options.cpu.empty() && options.triple.empty());
  if (native && !host_)
    return badTarget(fmt::format("the processor of this machine cannot be meant by 'native' for {}", triple_),
                     "name the processor with --cpu");
  cpu_ = native ? llvm::sys::getHostCPUName().str() : options.cpu.empty() ? std::string(tested->plainCpu) : options.cpu;
  features_ = native ? hostFeatures() : triple.isRISCV64() && options.cpu.empty() ? kRiscvBase : "";
  if (!options.features.empty()) features_ += (features_.empty() ? "" : ",") + options.features;

  {
    const std::unique_ptr<llvm::MCSubtargetInfo> plain(found->createMCSubtargetInfo(triple_, "", ""));
    AGLOW_OK(checkNames(*plain, options, cpu_));
  }
  std::optional<llvm::CodeModel::Model> model;
  if (options.codeModel == "small") model = llvm::CodeModel::Small;
  if (options.codeModel == "medium") model = llvm::CodeModel::Medium;
  if (options.codeModel == "large") model = llvm::CodeModel::Large;
  llvm::TargetOptions llvmOptions;
  llvmOptions.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  // Linkers can leave out what a program does not use.
  llvmOptions.FunctionSections = llvmOptions.DataSections = true;
  // The convention of Linux; LLVM's own default follows the features.
  if (triple.isRISCV64() && triple.isOSLinux()) llvmOptions.MCOptions.ABIName = "lp64d";
  const llvm::CodeGenOptLevel levels[] = {llvm::CodeGenOptLevel::None, llvm::CodeGenOptLevel::Less,
                                          llvm::CodeGenOptLevel::Default, llvm::CodeGenOptLevel::Aggressive};
  machine_.reset(found->createTargetMachine(triple_, cpu_, features_, llvmOptions, llvm::Reloc::PIC_, model,
                                            levels[options.optLevel]));
  AGLOW_CHECK(machine_ != nullptr, "LLVM has the target " + triple_ + " but cannot make its machine");
  for (const std::string_view feature : tested->needs)
    if (!has(std::string(feature)))
      return badTarget(
          fmt::format("'{}' with these features has no {}, which code for {} counts on", cpu_, feature, tested->triple),
          fmt::format("the plainest processor is '{}'", tested->plainCpu));
  if (triple.isX86() && has("soft-float"))
    return badTarget("code that computes floats without instructions for them is not generated", {});

  cpu::Machine& shape = shape_;
  if (triple.isX86()) {
    const bool wide = has("avx512f") && has("avx512vl") && has("avx512dq") && has("avx512bw");
    shape.lanes = wide ? 16 : has("avx") ? 8 : 4;
    shape.registers = wide ? 32 : 16;
    shape.fma = has("fma");
    shape.bytes = wide ? has("avx512vnni") : has("avxvnni");
    shape.halves = wide && has("avx512bf16");
    // On Intel's processors two products of bf16 take longer than two of f32.
    shape.fastHalves = shape.halves && !llvm::StringRef(cpu_).contains("rapids") && cpu_ != "cooperlake";
    shape.matrix = wide && triple.isOSLinux() && has("amx-tile") && has("amx-int8") && has("amx-bf16");
  } else {
    shape.lanes = 4;
    shape.registers = 32;
    shape.fma = true;
    shape.bytes = triple.isAArch64() && has("i8mm");
    shape.halves = shape.fastHalves = triple.isAArch64() && has("bf16");
    shape.byteBlocks = shape.bytes;
    shape.halfBlocks = shape.halves;
  }
  if (native) {
    shape.l1 = cacheBytes(_SC_LEVEL1_DCACHE_SIZE, shape.l1);
    shape.l2 = cacheBytes(_SC_LEVEL2_CACHE_SIZE, shape.l2);
    shape.l3 = cacheBytes(_SC_LEVEL3_CACHE_SIZE, shape.l3);
  }
  return {};
}

}  // namespace aglow::codegen
