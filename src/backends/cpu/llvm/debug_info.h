// DWARF whose source is the text of a program: one line per instruction, operands as variables that point to them.
#pragma once

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>

#include <map>
#include <string>

#include "backends/cpu/llvm/generate.h"
#include "backends/cpu/llvm/steps.h"

namespace aglow::codegen {

class DebugInfo {
public:
  // Of what has to be done before a line begins.
  static constexpr int kNoLine = 0;

  DebugInfo(llvm::Module& module, const std::string& file, const Target& target);

  // From now on the function is one of this file, and belongs to the line.
  void attach(llvm::Function& function, const std::string& name, const std::string& file, int line);
  // Where what the builder makes comes from; the function is attached.
  void setLine(llvm::IRBuilder<>& builder, int line);
  // The region's variable, from the builder's place on.
  void declare(llvm::IRBuilder<>& builder, const Region& region, llvm::Value* address);
  // Variables of a step, which finds the addresses in memory.
  void declareSlots(llvm::Function& step, const Program& program, const std::vector<StepAddress>& addresses);
  // Gives a line to the instructions of attached functions that have none.
  void finish();

private:
  llvm::DILocalVariable* newVariable(llvm::DISubprogram& scope, const Region& region);
  llvm::DIType* elementType(const Type& type);

  llvm::Module& module_;
  llvm::DIBuilder builder_;
  llvm::DICompileUnit* unit_;
  std::map<std::pair<llvm::Function*, std::string>, llvm::AllocaInst*> slots_;
};

}  // namespace aglow::codegen
