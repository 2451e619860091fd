// The code generator as a module of its own, which is loaded when it is first needed: what runs code that is there
// needs no LLVM, whose library takes longer to load than a model. Programs that link aglow_library have it in them.
#pragma once

#include "backends/cpu/llvm/generate.h"
#include "backends/cpu/llvm/jit.h"
#include "backends/cpu/llvm/target.h"

namespace aglow::codegen {

// The functions of llvm/ that others call.
struct ModuleTable {
  const char* codeHash;  // of the build that it belongs to
  decltype(&Target::create) createTarget;
  decltype(&generateObjects) generateObjects;
  decltype(&entryName) entryName;
  decltype(&generateBundle) generateBundle;
  decltype(&checkedFeatures) checkedFeatures;
  decltype(&missingFeatures) missingFeatures;
  decltype(&loadObjects) loadObjects;
};

}  // namespace aglow::codegen

extern "C" const aglow::codegen::ModuleTable aglow_module_table;
