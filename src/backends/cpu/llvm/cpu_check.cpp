// Code that asks cpuid on x86, and the auxiliary vector on Linux elsewhere.
#include "backends/cpu/llvm/cpu_check.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <map>

#include "backends/cpu/code/cpu_features.h"
#include "backends/cpu/llvm/generate.h"
#include "backends/cpu/llvm/library.h"

namespace aglow::codegen {

namespace {

std::span<const HwcapBit> hwcapBits(const llvm::Triple& triple) {
  if (triple.isAArch64()) return armBits();
  if (triple.isRISCV()) return riscvBits();
  return {};
}

class X86Check {
public:
  X86Check(llvm::IRBuilder<>& builder, const Target& target) : b(builder), target_(target) {}

  // Each question is answered before the next, which it may depend on, is asked.
  void emit() {
    struct Leaf {
      uint32_t masks[4] = {};
    };
    std::map<std::pair<uint32_t, uint32_t>, Leaf> leaves;
    uint64_t states = 0;
    for (const CpuidBit& bit : cpuidBits()) {
      if (!target_.has(bit.feature)) continue;
      leaves[{bit.leaf, bit.subleaf}].masks[bit.word] |= 1u << bit.bit;
      states |= static_cast<uint64_t>(bit.state);
    }
    if (states != 0) leaves[{1, 0}].masks[2] |= kSystemSavesState;
    for (const auto& [at, leaf] : leaves) {
      const auto [number, subleaf] = at;
      require(b.CreateICmpUGE(word(cpuid(number & 0x80000000u, 0), 0), b.getInt32(number)));
      llvm::Value* words = cpuid(number, subleaf);
      for (unsigned i = 0; i < 4; ++i)
        if (leaf.masks[i] != 0) requireBits(word(words, i), leaf.masks[i]);
    }
    if (states != 0) requireBits(savedState(), static_cast<uint32_t>(states));
    b.CreateRet(b.getTrue());
  }

private:
  llvm::Value* word(llvm::Value* words, unsigned i) { return b.CreateExtractValue(words, i); }

  llvm::Value* cpuid(uint32_t leaf, uint32_t subleaf) {
    llvm::Type* i32 = b.getInt32Ty();
    auto* type = llvm::FunctionType::get(llvm::StructType::get(i32, i32, i32, i32), {i32, i32}, false);
    auto* code = llvm::InlineAsm::get(type, "cpuid", "={ax},={bx},={cx},={dx},0,2,~{dirflag},~{fpsr},~{flags}", true);
    return b.CreateCall(type, code, {b.getInt32(leaf), b.getInt32(subleaf)});
  }

  llvm::Value* savedState() {
    llvm::Type* i32 = b.getInt32Ty();
    auto* type = llvm::FunctionType::get(llvm::StructType::get(i32, i32), {i32}, false);
    auto* code = llvm::InlineAsm::get(type, "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}", true);
    return word(b.CreateCall(type, code, {b.getInt32(0)}), 0);
  }

  void requireBits(llvm::Value* value, uint32_t mask) {
    require(b.CreateICmpEQ(b.CreateAnd(value, b.getInt32(mask)), b.getInt32(mask)));
  }

  void require(llvm::Value* condition) {
    llvm::Function* function = b.GetInsertBlock()->getParent();
    llvm::BasicBlock* next = llvm::BasicBlock::Create(b.getContext(), "next", function);
    llvm::BasicBlock* lacks = llvm::BasicBlock::Create(b.getContext(), "lacks", function);
    b.CreateCondBr(condition, next, lacks);
    b.SetInsertPoint(lacks);
    b.CreateRet(b.getFalse());
    b.SetInsertPoint(next);
  }

  llvm::IRBuilder<>& b;
  const Target& target_;
};

void emitHwcapCheck(llvm::IRBuilder<>& b, llvm::Module& module, const Target& target, const llvm::Triple& triple) {
  std::map<unsigned long, uint64_t> masks;
  for (const HwcapBit& bit : hwcapBits(triple))
    if (target.has(bit.feature)) masks[bit.key] |= uint64_t{1} << bit.bit;
  llvm::Type* word = module.getDataLayout().getIntPtrType(b.getContext());
  llvm::Value* fits = b.getTrue();
  for (const auto& [key, mask] : masks) {
    const llvm::FunctionCallee ask = module.getOrInsertFunction("getauxval", word, word);
    llvm::Value* bits = b.CreateCall(ask, {llvm::ConstantInt::get(word, key)});
    llvm::Value* wanted = llvm::ConstantInt::get(word, mask);
    fits = b.CreateAnd(fits, b.CreateICmpEQ(b.CreateAnd(bits, wanted), wanted));
  }
  b.CreateRet(fits);
}

}  // namespace

std::vector<std::string> checkedFeatures(const Target& target) {
  const llvm::Triple triple(target.triple());
  std::vector<std::string> features;
  if (triple.isX86())
    for (const CpuidBit& bit : cpuidBits())
      if (target.has(bit.feature)) features.emplace_back(bit.feature);
  if (triple.isOSLinux())
    for (const HwcapBit& bit : hwcapBits(triple))
      if (target.has(bit.feature)) features.emplace_back(bit.feature);
  return features;
}

std::vector<std::string> missingFeatures(const Target& target) {
  AGLOW_CHECK(target.isHost(), "this machine is asked for the features of another");
  return missingHere(checkedFeatures(target));
}

void setBaseAttributes(llvm::Function& function, const Target& target) {
  setTargetAttributes(function, target);
  const llvm::Triple triple(target.triple());
  for (const char* name : {"prefer-vector-width", "min-legal-vector-width"}) function.removeFnAttr(name);
  function.addFnAttr("target-cpu", triple.isX86() ? "x86-64" : triple.isRISCV() ? "generic-rv64" : "generic");
  function.addFnAttr("target-features", triple.isRISCV() ? kRiscvBase : "");
}

llvm::Function* emitCpuCheck(llvm::Module& module, const Target& target, const std::string& name) {
  llvm::LLVMContext& c = module.getContext();
  auto* type = llvm::FunctionType::get(llvm::Type::getInt1Ty(c), false);
  auto* function = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, module);
  setBaseAttributes(*function, target);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(c, "entry", function));
  const llvm::Triple triple(target.triple());
  if (triple.isX86())
    X86Check(b, target).emit();
  else if (triple.isOSLinux())
    emitHwcapCheck(b, module, target, triple);
  else
    b.CreateRet(b.getTrue());
  return function;
}

}  // namespace aglow::codegen
