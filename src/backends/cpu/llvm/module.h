// From a placed program to an LLVM module.
#pragma once

#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "backends/cpu/llvm/generate.h"

namespace aglow::codegen {

class Library;
class DebugInfo;

// Empty, for the target.
std::unique_ptr<llvm::Module> newModule(llvm::LLVMContext& context, const std::string& name, const Target& target);

// The function that generate.h describes. What it calls is declared until the library is linked. With debug information
// its source is the listing.
llvm::Function* emitProgram(llvm::Module& module, Library& library, const Program& program, const MemoryMap& memory,
                            const Target& target, const CodeOptions& options, DebugInfo* debug = nullptr,
                            const Listing* listing = nullptr);

// Drops what neither exported functions nor each other need, declarations included.
void dropUnused(llvm::Module& module, const Target& target);

// Internal error where a module is not what LLVM calls valid.
void checkModule(const llvm::Module& module);

// LLVM's passes at the target's optimization level.
void optimizeModule(llvm::Module& module, const Target& target);

// The object of an optimized module, which is of no use afterwards.
std::string writeObject(llvm::Module& module, const Target& target);

// An optimized module as a file; the module stays as it is.
std::string writeModule(const llvm::Module& module, const Target& target, CodeFile file);

}  // namespace aglow::codegen
