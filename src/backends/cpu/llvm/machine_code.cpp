// LLVM's optimizer and its code generator.
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/StandardInstrumentations.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "backends/cpu/llvm/guard.h"
#include "backends/cpu/llvm/library.h"
#include "backends/cpu/llvm/module.h"

namespace aglow::codegen {

namespace {

std::string emitFile(const llvm::Module& optimized, const Target& target, llvm::CodeGenFileType type) {
  struct Work {
    explicit Work(const llvm::Module& source) : module(llvm::CloneModule(source)) {}

    std::unique_ptr<llvm::Module> module;  // a copy: code generation changes what it works on
    llvm::SmallString<0> bytes;
    llvm::raw_svector_ostream stream{bytes};
    llvm::legacy::PassManager passes;
  };
  const Abandoned<Work> work(std::make_unique<Work>(optimized));
  const bool impossible = target.machine().addPassesToEmitFile(work->passes, work->stream, nullptr, type);
  AGLOW_CHECK(!impossible, "LLVM cannot write this kind of file for " + target.triple());
  work->passes.run(*work->module);
  return std::string(work->bytes.str());
}

// The optimizer's passes and what they find out.
struct Optimizer {
  explicit Optimizer(const Target& target)
      : builder(&target.machine(), llvm::PipelineTuningOptions(), std::nullopt, &callbacks) {
    // Passes leave functions alone that ask for it.
    respectful.registerCallbacks(callbacks);
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation respectful{false};
  llvm::PassBuilder builder;
  llvm::ModulePassManager passes;
};

}  // namespace

void optimizeModule(llvm::Module& module, const Target& target) {
  std::string fault;
  llvm::raw_string_ostream text(fault);
  AGLOW_CHECK(!llvm::verifyModule(module, &text), "the generated module is not valid: " + text.str());
  const Abandoned<Optimizer> optimizer(std::make_unique<Optimizer>(target));
  const llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                            llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  const int level = target.options().optLevel;
  const llvm::OptimizationLevel chosen = target.options().optSize ? llvm::OptimizationLevel::Os : levels[level];
  if (chosen == llvm::OptimizationLevel::O0) {
    optimizer->passes = optimizer->builder.buildO0DefaultPipeline(chosen);
  } else {
    // The library's functions are optimized already: they go where they are called before any pass looks at them.
    optimizer->passes.addPass(llvm::AlwaysInlinerPass());
    optimizer->passes.addPass(llvm::GlobalDCEPass());
    optimizer->passes.addPass(optimizer->builder.buildPerModuleDefaultPipeline(chosen));
  }
  optimizer->passes.run(module, optimizer->modules);
}

void dropUnused(llvm::Module& module, const Target& target) {
  const Abandoned<Optimizer> optimizer(std::make_unique<Optimizer>(target));
  optimizer->passes.addPass(llvm::GlobalDCEPass());
  optimizer->passes.run(module, optimizer->modules);
}

std::string writeModule(const llvm::Module& module, const Target& target, CodeFile file) {
  if (file == CodeFile::Object) return emitFile(module, target, llvm::CodeGenFileType::ObjectFile);
  if (file == CodeFile::Assembly) return emitFile(module, target, llvm::CodeGenFileType::AssemblyFile);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace aglow::codegen
