#include "backends/cpu/llvm/debug_info.h"

#include <llvm/BinaryFormat/Dwarf.h>

#include "backends/cpu/bundle/c_names.h"

namespace aglow::codegen {

namespace {

constexpr const char* kFolder = ".";
constexpr uint64_t kPointerBits = 64;

}  // namespace

DebugInfo::DebugInfo(llvm::Module& module, const std::string& file, const Target& target)
    : module_(module), builder_(module) {
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  module.addModuleFlag(llvm::Module::Warning, "Dwarf Version", 4);
  unit_ = builder_.createCompileUnit(llvm::dwarf::DW_LANG_C99, builder_.createFile(file, kFolder),
                                     "aglow " AGLOW_VERSION, target.options().optLevel > 0, "", 0);
}

void DebugInfo::attach(llvm::Function& function, const std::string& name, const std::string& file, int line) {
  llvm::DIFile* source = builder_.createFile(file, kFolder);
  auto* type = builder_.createSubroutineType(builder_.getOrCreateTypeArray({}));
  auto flags = llvm::DISubprogram::SPFlagDefinition;
  if (unit_->isOptimized()) flags |= llvm::DISubprogram::SPFlagOptimized;
  if (function.hasLocalLinkage()) flags |= llvm::DISubprogram::SPFlagLocalToUnit;
  const auto at = static_cast<unsigned>(line);
  function.setSubprogram(builder_.createFunction(source, name, function.getName(), source, at, type, at,
                                                 llvm::DINode::FlagPrototyped, flags));
}

void DebugInfo::setLine(llvm::IRBuilder<>& b, int line) {
  llvm::DISubprogram* scope = b.GetInsertBlock()->getParent()->getSubprogram();
  b.SetCurrentDebugLocation(llvm::DILocation::get(module_.getContext(), static_cast<unsigned>(line), 0, scope));
}

llvm::DIType* DebugInfo::elementType(const Type& type) {
  const ElemKind kind = type.kind();
  const unsigned encoding = isFloat(kind)                 ? llvm::dwarf::DW_ATE_float
                            : kind == ElemKind::Bool      ? llvm::dwarf::DW_ATE_boolean
                            : isSigned(storageKind(kind)) ? llvm::dwarf::DW_ATE_signed
                                                          : llvm::dwarf::DW_ATE_unsigned;
  return builder_.createBasicType(elemName(kind), static_cast<uint64_t>(elemBytes(kind)) * 8, encoding);
}

llvm::DILocalVariable* DebugInfo::newVariable(llvm::DISubprogram& scope, const Region& region) {
  llvm::DIType* pointer = builder_.createPointerType(elementType(region.type), kPointerBits);
  return builder_.createAutoVariable(&scope, cIdentifier(region.name), scope.getFile(), scope.getLine(), pointer, true);
}

void DebugInfo::declare(llvm::IRBuilder<>& b, const Region& region, llvm::Value* address) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::DISubprogram* scope = function->getSubprogram();
  llvm::AllocaInst*& slot = slots_[{function, region.name}];
  if (slot == nullptr) {
    llvm::BasicBlock& entry = function->getEntryBlock();
    slot = llvm::IRBuilder<>(&entry, entry.begin()).CreateAlloca(address->getType());
    builder_.insertDeclare(slot, newVariable(*scope, region), builder_.createExpression(),
                           llvm::DILocation::get(module_.getContext(), scope->getLine(), 0, scope),
                           slot->getNextNode());
  }
  b.CreateStore(address, slot);
}

void DebugInfo::declareSlots(llvm::Function& step, const Program& program, const std::vector<StepAddress>& addresses) {
  using namespace llvm::dwarf;
  llvm::DISubprogram* scope = step.getSubprogram();
  const auto* here = llvm::DILocation::get(module_.getContext(), scope->getLine(), 0, scope);
  llvm::IRBuilder<> b(&step.getEntryBlock(), step.getEntryBlock().begin());
  // Where registers are not followed, the parameter needs memory.
  llvm::AllocaInst* kept = nullptr;
  if (!unit_->isOptimized()) {
    kept = b.CreateAlloca(step.getArg(0)->getType());
    setLine(b, kNoLine);
    b.CreateStore(step.getArg(0), kept);
  }
  for (size_t slot = 0; slot < addresses.size(); ++slot) {
    if (addresses[slot].region == kNoRegion) continue;
    const uint64_t offset = slot * kPointerBits / 8;
    const uint64_t inMemory[] = {DW_OP_deref, DW_OP_plus_uconst, offset};
    const uint64_t inRegister[] = {DW_OP_plus_uconst, offset, DW_OP_deref, DW_OP_stack_value};
    llvm::DILocalVariable* variable = newVariable(*scope, program[addresses[slot].region]);
    llvm::Instruction* before = &*b.GetInsertPoint();
    if (kept != nullptr)
      builder_.insertDeclare(kept, variable, builder_.createExpression(inMemory), here, before);
    else
      builder_.insertDbgValueIntrinsic(step.getArg(0), variable, builder_.createExpression(inRegister), here, before);
  }
}

void DebugInfo::finish() {
  for (llvm::Function& function : module_) {
    llvm::DISubprogram* scope = function.getSubprogram();
    if (scope == nullptr) continue;
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& instr : block)
        if (!instr.getDebugLoc())
          instr.setDebugLoc(llvm::DILocation::get(module_.getContext(), scope->getLine(), 0, scope));
  }
  builder_.finalize();
}

}  // namespace aglow::codegen
