// Code that asks the processor it runs on for the instructions that a target uses.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <string>
#include <vector>

#include "backends/cpu/llvm/target.h"

namespace aglow::codegen {

// `i1 NAME()`, written in nothing but base instructions.
llvm::Function* emitCpuCheck(llvm::Module& module, const Target& target, const std::string& name);

// Attributes of functions that run before anything is known of the processor.
void setBaseAttributes(llvm::Function& function, const Target& target);

}  // namespace aglow::codegen
