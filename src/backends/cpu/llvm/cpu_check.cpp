// Where processors and systems say what they can do: cpuid on x86, the auxiliary vector on Linux elsewhere.
#include "backends/cpu/llvm/cpu_check.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>
#include <sys/auxv.h>

#include <algorithm>
#include <map>

#include "backends/cpu/llvm/generate.h"
#include "backends/cpu/llvm/library.h"

namespace aglow::codegen {

namespace {

// Registers that the system has to save for the instructions to be usable.
enum class State : uint8_t { None = 0, Avx = 0x06, Avx512 = 0xe6 };

struct CpuidBit {
  const char* feature;
  uint32_t leaf, subleaf;
  unsigned word, bit;  // word: eax, ebx, ecx, edx
  State state = State::None;
};

constexpr CpuidBit kCpuidBits[] = {
    {"sse3", 1, 0, 2, 0},
    {"ssse3", 1, 0, 2, 9},
    {"fma", 1, 0, 2, 12, State::Avx},
    {"sse4.1", 1, 0, 2, 19},
    {"sse4.2", 1, 0, 2, 20},
    {"movbe", 1, 0, 2, 22},
    {"popcnt", 1, 0, 2, 23},
    {"avx", 1, 0, 2, 28, State::Avx},
    {"f16c", 1, 0, 2, 29, State::Avx},
    {"bmi", 7, 0, 1, 3},
    {"avx2", 7, 0, 1, 5, State::Avx},
    {"bmi2", 7, 0, 1, 8},
    {"avx512f", 7, 0, 1, 16, State::Avx512},
    {"avx512dq", 7, 0, 1, 17, State::Avx512},
    {"avx512ifma", 7, 0, 1, 21, State::Avx512},
    {"avx512cd", 7, 0, 1, 28, State::Avx512},
    {"avx512bw", 7, 0, 1, 30, State::Avx512},
    {"avx512vl", 7, 0, 1, 31, State::Avx512},
    {"avx512vbmi", 7, 0, 2, 1, State::Avx512},
    {"avx512vbmi2", 7, 0, 2, 6, State::Avx512},
    {"gfni", 7, 0, 2, 8},
    {"avx512vnni", 7, 0, 2, 11, State::Avx512},
    {"avx512bitalg", 7, 0, 2, 12, State::Avx512},
    {"avx512vpopcntdq", 7, 0, 2, 14, State::Avx512},
    {"avx512fp16", 7, 0, 3, 23, State::Avx512},
    {"avxvnni", 7, 1, 0, 4, State::Avx},
    {"avx512bf16", 7, 1, 0, 5, State::Avx512},
    {"avxifma", 7, 1, 0, 23, State::Avx},
    {"avxvnniint8", 7, 1, 3, 4, State::Avx},
    {"avxneconvert", 7, 1, 3, 5, State::Avx},
    {"avxvnniint16", 7, 1, 3, 10, State::Avx},
    {"avx10.1-256", 7, 1, 3, 19, State::Avx512},
    {"lzcnt", 0x80000001, 0, 2, 5},
    {"sse4a", 0x80000001, 0, 2, 6},
    {"xop", 0x80000001, 0, 2, 11, State::Avx},
    {"fma4", 0x80000001, 0, 2, 16, State::Avx},
    {"tbm", 0x80000001, 0, 2, 21},
};

// Bits of the words that Linux gives each process.
struct HwcapBit {
  const char* feature;
  unsigned long key;  // AT_HWCAP, AT_HWCAP2
  unsigned bit;
};

constexpr HwcapBit kArmBits[] = {
    {"lse", 16, 8},  {"fullfp16", 16, 10}, {"rdm", 16, 12},  {"rcpc", 16, 15}, {"dotprod", 16, 20},
    {"sve", 16, 22}, {"sve2", 26, 1},      {"i8mm", 26, 13}, {"bf16", 26, 14},
};
constexpr HwcapBit kRiscvBits[] = {{"a", 16, 0}, {"c", 16, 2},  {"d", 16, 3},
                                   {"f", 16, 5}, {"m", 16, 12}, {"v", 16, 21}};

std::span<const HwcapBit> hwcapBits(const llvm::Triple& triple) {
  if (triple.isAArch64()) return kArmBits;
  if (triple.isRISCV()) return kRiscvBits;
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
    for (const CpuidBit& bit : kCpuidBits) {
      if (!target_.has(bit.feature)) continue;
      leaves[{bit.leaf, bit.subleaf}].masks[bit.word] |= 1u << bit.bit;
      states |= static_cast<uint64_t>(bit.state);
    }
    constexpr uint32_t kSystemSavesState = 1u << 27;
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
    for (const CpuidBit& bit : kCpuidBits)
      if (target.has(bit.feature)) features.emplace_back(bit.feature);
  if (triple.isOSLinux())
    for (const HwcapBit& bit : hwcapBits(triple))
      if (target.has(bit.feature)) features.emplace_back(bit.feature);
  return features;
}

std::vector<std::string> missingFeatures(const Target& target) {
  AGLOW_CHECK(target.isHost(), "this machine is asked for the features of another");
  const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  const std::span<const HwcapBit> bits = hwcapBits(llvm::Triple(target.triple()));
  std::vector<std::string> missing = checkedFeatures(target);
  std::erase_if(missing, [&](const std::string& feature) {
    const auto bit = std::find_if(bits.begin(), bits.end(), [&](const HwcapBit& b) { return b.feature == feature; });
    return bit == bits.end() ? host.lookup(feature) : (getauxval(bit->key) >> bit->bit & 1) != 0;
  });
  return missing;
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
