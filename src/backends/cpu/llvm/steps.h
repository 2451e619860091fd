// Functions that do the work of one instruction, and what they need to be called.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <vector>

#include "backends/cpu/kernels/plan.h"
#include "backends/cpu/llvm/lanes.h"
#include "backends/cpu/llvm/library.h"
#include "inst/program.h"

namespace aglow::codegen {

// Where a step finds something: a region or the program's data, or an offset in bytes from the beginning of one.
// kNoRegion: null.
struct StepAddress {
  static constexpr RegionId kData = -2;
  RegionId region = kNoRegion;
  int64_t offset = 0;
};

// i32 function(ptr addresses, i64 begin, i64 end): the units begin to end of the work. All but the addresses is
// constant, so steps that differ only in addresses share a function.
struct Step {
  llvm::Function* function = nullptr;
  int64_t units = 1;   // of one round
  int64_t rounds = 1;  // done one after the other
  std::vector<StepAddress> addresses = {};
};
using Steps = std::vector<Step>;

// Marks their functions.
inline constexpr const char* kStepAttribute = "aglow-step";

// Functions of kernels that steps of a program share.
struct SharedKernels {
  std::map<std::string, llvm::Function*> functions;  // by all that they are made of
  std::map<std::string, int> specialised;            // how many there are of a kernel
  std::string data;                                  // descriptors that are read when the program runs
  std::map<std::string, int64_t> places;             // of descriptors, in the data
};

// What emitters share.
struct EmitContext {
  llvm::Module& module;
  Library& library;
  const Target& target;
  const Program& program;
  SharedKernels& shared;

  // A function with the signature of a step, its insertion point at the entry, returning what the caller emits.
  llvm::Function* newStep(const std::string& name) const;
};

// The address in slot `slot` of a function's first parameter.
llvm::Value* addressSlot(llvm::IRBuilder<>& builder, llvm::Value* addresses, int slot);

// for (i = begin; i + step <= end; i += step) body(i); gives i after the loop. Loops are left as they are: vectors are
// written out already.
llvm::Value* emitLoop(llvm::IRBuilder<>& builder, llvm::Value* begin, llvm::Value* end, int64_t step,
                      llvm::function_ref<void(llvm::Value*)> body);

// An instruction that is a nest.
Steps emitLoops(const EmitContext& context, const Instr& instr, const std::string& name);

// An instruction for library kernels; what is fused with it becomes their epilogue. With `shared`, steps that call the
// same kernel for the same problem have one function, and so have the many of a general kernel.
Steps emitKernel(const EmitContext& context, const cpu::KernelPlan& plan, const Instr& instr, const std::string& name,
                 bool shared);

}  // namespace aglow::codegen
