// Programs as tables for the loop of backends/cpu/kernels/program.h.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include "backends/cpu/llvm/step_functions.h"

namespace aglow::codegen {

// The body of `i32 function(ptr bases, ptr runTime)`, at the builder's place.
void emitTables(llvm::IRBuilder<>& builder, Library& library, StepFunctions& functions, const Program& program,
                const MemoryMap& memory, const CodeOptions& options);

// Plain data as a constant of the module.
llvm::GlobalVariable* dataTable(llvm::Module& module, llvm::StringRef bytes, size_t alignment, const std::string& name);
template <class T>
llvm::GlobalVariable* dataTable(llvm::Module& module, const std::vector<T>& rows, const std::string& name) {
  const llvm::StringRef bytes(reinterpret_cast<const char*>(rows.data()), rows.size() * sizeof(T));
  return dataTable(module, bytes, alignof(T), name);
}

}  // namespace aglow::codegen
