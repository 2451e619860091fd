// LLVM's optimizer and its code generator.
#include <fmt/format.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/StandardInstrumentations.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "backends/cpu/llvm/module.h"
#include "inst/text.h"

namespace aglow::codegen {

// From cmake/code_hash.cmake.
extern const char* const kCodeHash;

namespace {

std::string emitFile(const llvm::Module& optimized, const Target& target, llvm::CodeGenFileType type) {
  // Code generation changes the module it works on.
  const std::unique_ptr<llvm::Module> module = llvm::CloneModule(optimized);
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  const bool impossible = target.machine().addPassesToEmitFile(passes, stream, nullptr, type);
  AGLOW_CHECK(!impossible, "LLVM cannot write this kind of file for " + target.triple());
  passes.run(*module);
  return std::string(bytes.str());
}

}  // namespace

void optimizeModule(llvm::Module& module, const Target& target) {
  std::string fault;
  llvm::raw_string_ostream text(fault);
  AGLOW_CHECK(!llvm::verifyModule(module, &text), "the generated module is not valid: " + text.str());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  // Passes leave functions alone that ask for it.
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation respectful(false);
  respectful.registerCallbacks(callbacks);
  llvm::PassBuilder builder(&target.machine(), llvm::PipelineTuningOptions(), std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                            llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  const int level = target.options().optLevel;
  const llvm::OptimizationLevel chosen = target.options().optSize ? llvm::OptimizationLevel::Os : levels[level];
  llvm::ModulePassManager passes = chosen == llvm::OptimizationLevel::O0
                                       ? builder.buildO0DefaultPipeline(chosen)
                                       : builder.buildPerModuleDefaultPipeline(chosen);
  passes.run(module, modules);
}

std::string writeModule(const llvm::Module& module, const Target& target, CodeFile file) {
  if (file == CodeFile::Object) return emitFile(module, target, llvm::CodeGenFileType::ObjectFile);
  if (file == CodeFile::Assembly) return emitFile(module, target, llvm::CodeGenFileType::AssemblyFile);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

std::string codeSource(std::span<const Program> programs, const Target& target, const CodeOptions& options) {
  const cpu::Machine& shape = target.shape();
  const TargetOptions& chosen = target.options();
  return fmt::format("{} {} {}\n{} {} {} {} {} {}\n{} {} {} {} {} {}\n{} {} {} {}\n{}", AGLOW_VERSION,
                     LLVM_VERSION_STRING, kCodeHash, target.triple(), target.cpu(), target.features(), chosen.codeModel,
                     chosen.optLevel, chosen.optSize, shape.lanes, shape.registers, shape.fma, shape.l1, shape.l2,
                     shape.l3, options.name, options.threads, options.observed, options.apart, print(programs));
}

std::string generateCode(std::span<const Program> programs, std::span<const MemoryMap> memory, const Target& target,
                         const CodeOptions& options, CodeFile file) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = emitModule(context, programs, memory, target, options);
  optimizeModule(*module, target);
  return writeModule(*module, target, file);
}

}  // namespace aglow::codegen
