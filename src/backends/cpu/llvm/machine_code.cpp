// LLVM's optimizer and its code generator.
#include <fmt/format.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/StandardInstrumentations.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SCCP.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "backends/cpu/llvm/guard.h"
#include "backends/cpu/llvm/library.h"
#include "backends/cpu/llvm/module.h"
#include "backends/cpu/llvm/steps.h"

namespace aglow::codegen {

namespace {

std::string emitFile(llvm::Module& module, const Target& target, llvm::CodeGenFileType type) {
  struct Work {
    llvm::SmallString<0> bytes;
    llvm::raw_svector_ostream stream{bytes};
    llvm::legacy::PassManager passes;
  };
  const Abandoned<Work> work(std::make_unique<Work>());
  const bool impossible = target.machine().addPassesToEmitFile(work->passes, work->stream, nullptr, type);
  AGLOW_CHECK(!impossible, "LLVM cannot write this kind of file for " + target.triple());
  work->passes.run(module);
  return std::string(work->bytes.str());
}

std::string emitCopy(const llvm::Module& module, const Target& target, llvm::CodeGenFileType type) {
  const Abandoned<llvm::Module> copy(llvm::CloneModule(module));
  return emitFile(*copy, target, type);
}

// What functions go through once the library's are inlined. Those are optimized already, so this is LLVM's own list
// without the rounds that repeat, and without passes that find nothing in a step, which has no calls left. Loops are
// not copied for conditions that stay the same inside of them: those are known in a step, or they are about edges.
constexpr const char* kPasses[] = {
    // Constants of the problem reach the places where they matter.
    "sroa", "early-cse<memssa>", "instcombine<no-verify-fixpoint>", "simplifycfg<switch-range-to-icmp>",
    // Loops in their simplest form; short ones become straight lines.
    "loop-mssa(loop-simplifycfg,loop-rotate,licm,simple-loop-unswitch)", "simplifycfg<switch-range-to-icmp>",
    "instcombine<no-verify-fixpoint>", "loop(loop-idiom,indvars,loop-deletion,unroll-wholly)",
    // What the lines have in common, and what is known in each.
    "sroa", "gvn", "sccp", "bdce", "instcombine<no-verify-fixpoint>", "jump-threading", "correlated-propagation", "dse",
    "simplifycfg<hoist-common-insts;sink-common-insts;switch-range-to-icmp>",
    // Loops over single elements get vectors, and those that are left larger bodies.
    "loop-vectorize",
    "simplifycfg<switch-range-to-icmp;switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts>",
    "vector-combine", "instcombine<no-verify-fixpoint>", "loop-unroll<O3>", "sroa<preserve-cfg>", "loop-mssa(licm)",
    "instsimplify", "div-rem-pairs", "simplifycfg<switch-range-to-icmp>"};

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
    // By its own name this pass has the limits of a lower level.
    builder.registerPipelineParsingCallback([](llvm::StringRef name, llvm::LoopPassManager& list, auto) {
      if (name == "unroll-wholly") list.addPass(llvm::LoopFullUnrollPass(3));
      return name == "unroll-wholly";
    });
  }

  void addPasses() {
    // Functions that stay apart, as those that take others' addresses do, get their constants first, or go.
    const std::string list =
        fmt::format("ipsccp,globalopt,globaldce,function<eager-inv>({}),globaldce,constmerge", fmt::join(kPasses, ","));
    AGLOW_CHECK(!llvm::errorToBool(builder.parsePassPipeline(passes, list)),
                "LLVM does not know all passes of " + list);
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

// Each step's kernel with the constants that the step gives it, foremost the descriptor: most of a kernel is for other
// problems than this one, and is dropped here, before epilogues go into it and it goes into the step.
void specialiseKernels(llvm::Module& module, llvm::FunctionAnalysisManager& analyses) {
  std::vector<llvm::CallInst*> calls;
  for (llvm::Function& step : module)
    if (step.hasFnAttribute(kStepAttribute))
      for (llvm::Instruction& instruction : llvm::instructions(step))
        if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) calls.push_back(call);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SCCPPass());
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::CallInst* call : calls) {
    llvm::Function* kernel = call->getCalledFunction();
    if (kernel == nullptr || !kernel->hasLocalLinkage() || kernel->isDeclaration()) continue;
    if (!kernel->hasOneUse()) {
      llvm::ValueToValueMapTy values;
      kernel = llvm::CloneFunction(kernel, values);
      call->setCalledFunction(kernel);
    }
    for (llvm::Argument& argument : kernel->args())
      if (auto* given = llvm::dyn_cast<llvm::Constant>(call->getArgOperand(argument.getArgNo())))
        argument.replaceAllUsesWith(given);
    passes.run(*kernel, analyses);
  }
}

}  // namespace

void checkModule(const llvm::Module& module) {
  std::string fault;
  llvm::raw_string_ostream text(fault);
  AGLOW_CHECK(!llvm::verifyModule(module, &text), "the generated module is not valid: " + text.str());
}

void optimizeModule(llvm::Module& module, const Target& target) {
  const Abandoned<Optimizer> optimizer(std::make_unique<Optimizer>(target));
  const llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                            llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  const int level = target.options().optLevel;
  const llvm::OptimizationLevel chosen = target.options().optSize ? llvm::OptimizationLevel::Os : levels[level];
  if (chosen == llvm::OptimizationLevel::O0) {
    optimizer->passes = optimizer->builder.buildO0DefaultPipeline(chosen);
  } else {
    // The library's functions are optimized already: they go where they are called before any other pass looks at them.
    specialiseKernels(module, optimizer->functions);
    optimizer->passes.addPass(llvm::AlwaysInlinerPass());
    optimizer->passes.addPass(llvm::GlobalDCEPass());
    if (chosen == llvm::OptimizationLevel::O2 || chosen == llvm::OptimizationLevel::O3)
      optimizer->addPasses();
    else
      optimizer->passes.addPass(optimizer->builder.buildPerModuleDefaultPipeline(chosen));
  }
  optimizer->passes.run(module, optimizer->modules);
}

void dropUnused(llvm::Module& module, const Target& target) {
  const Abandoned<Optimizer> optimizer(std::make_unique<Optimizer>(target));
  optimizer->passes.addPass(llvm::GlobalDCEPass());
  optimizer->passes.run(module, optimizer->modules);
}

std::string writeObject(llvm::Module& module, const Target& target) {
  return emitFile(module, target, llvm::CodeGenFileType::ObjectFile);
}

std::string writeModule(const llvm::Module& module, const Target& target, CodeFile file) {
  if (file == CodeFile::Object) return emitCopy(module, target, llvm::CodeGenFileType::ObjectFile);
  if (file == CodeFile::Assembly) return emitCopy(module, target, llvm::CodeGenFileType::AssemblyFile);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace aglow::codegen
