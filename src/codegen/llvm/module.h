// From a placed program to an LLVM module.
#pragma once

#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "codegen/llvm/generate.h"

namespace aglow::codegen {

// The module holds the function that generate.h describes.
std::unique_ptr<llvm::Module> emitModule(llvm::LLVMContext& context, const Program& program, const MemoryMap& memory,
                                         const Target& target, const CodeOptions& options);

// LLVM's passes at the target's optimization level.
void optimizeModule(llvm::Module& module, const Target& target);

}  // namespace aglow::codegen
