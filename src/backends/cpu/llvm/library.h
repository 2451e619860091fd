// The kernel library inside the program: bitcode whose functions are linked into generated modules as they are needed.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "backends/cpu/llvm/guard.h"
#include "backends/cpu/llvm/target.h"

namespace aglow::codegen {

class Library {
public:
  Library(llvm::Module& module, const Target& target);

  // A function of the library as the module sees it; internal error when there is none of this name.
  llvm::Function* find(const std::string& name);
  bool has(const std::string& name) const;
  // Calls one with values of the types its source names. Vectors pass by value there, but on the way to bitcode some of
  // them turned into other types or into memory.
  llvm::Value* call(llvm::IRBuilder<>& builder, const std::string& name, llvm::ArrayRef<llvm::Value*> arguments,
                    llvm::Type* result);
  // Brings in the bodies of what was found, for the target's instruction set. Nothing can be found afterwards.
  void link();

private:
  llvm::Module& module_;
  const Target& target_;
  Abandoned<llvm::Module> library_;
};

// The attributes by which functions are compiled for the target.
void setTargetAttributes(llvm::Function& function, const Target& target);

}  // namespace aglow::codegen
