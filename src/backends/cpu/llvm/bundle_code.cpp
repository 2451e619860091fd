// The functions that a bundle exports, around the programs of its entries: they turn the caller's addresses into the
// bases of the memory map.
#include <fmt/format.h>

#include <optional>

#include "backends/cpu/llvm/cpu_check.h"
#include "backends/cpu/llvm/debug_info.h"
#include "backends/cpu/llvm/guard.h"
#include "backends/cpu/llvm/library.h"
#include "backends/cpu/llvm/module.h"
#include "backends/cpu/llvm/program_tables.h"

namespace aglow::codegen {

namespace {

class BundleEmitter {
public:
  BundleEmitter(llvm::Module& module, const Bundle& bundle, const Target& target)
      : module_(module), bundle_(bundle), target_(target), library_(module, target), b(module.getContext()) {}

  void run() {
    if (bundle_.debug) debug_.emplace(module_, bundle_.entries.front().listing.file, target_);
    for (const BundleEntry& entry : bundle_.entries) emitEntry(entry);
    emitCheck();
    emitStateInit();
    emitInfo();
    if (debug_) debug_->finish();
    library_.link();
    setBaseAttributes(*module_.getFunction("aglow_hash_lines"), target_);
  }

private:
  llvm::Type* pointer() { return b.getPtrTy(); }
  llvm::Constant* null() { return llvm::ConstantPointerNull::get(b.getPtrTy()); }
  llvm::Constant* number(int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); }

  llvm::Function* exported(const std::string& name, unsigned parameters) {
    const std::vector<llvm::Type*> types(parameters, pointer());
    auto* type = llvm::FunctionType::get(b.getInt32Ty(), types, false);
    auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module_);
    setTargetAttributes(*function, target_);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    function->addRetAttr(llvm::Attribute::SExt);
    b.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function));
    return function;
  }

  void returnIf(llvm::Value* condition, int status) {
    llvm::Function* function = b.GetInsertBlock()->getParent();
    llvm::BasicBlock* bad = llvm::BasicBlock::Create(module_.getContext(), "bad", function);
    llvm::BasicBlock* good = llvm::BasicBlock::Create(module_.getContext(), "good", function);
    b.CreateCondBr(condition, bad, good);
    b.SetInsertPoint(bad);
    b.CreateRet(b.getInt32(static_cast<uint32_t>(status)));
    b.SetInsertPoint(good);
  }

  void checkAddresses(llvm::ArrayRef<llvm::Value*> addresses) {
    llvm::Value* bits = b.getInt64(0);
    llvm::Value* isNull = b.getFalse();
    for (llvm::Value* address : addresses) {
      bits = b.CreateOr(bits, b.CreatePtrToInt(address, b.getInt64Ty()));
      isNull = b.CreateOr(isNull, b.CreateIsNull(address));
    }
    llvm::Value* unaligned = b.CreateICmpNE(b.CreateAnd(bits, number(Program::kAlignment - 1)), number(0));
    returnIf(b.CreateOr(isNull, unaligned), kBundleBadMemory);
  }

  void emitEntry(const BundleEntry& entry) {
    llvm::Function* program =
        emitProgram(module_, library_, entry.program, entry.memory, target_,
                    {.name = entry.name + ".program", .threads = bundle_.threads, .apart = bundle_.debug},
                    debug_ ? &*debug_ : nullptr, &entry.listing);
    program->setLinkage(llvm::Function::InternalLinkage);
    if (!bundle_.debug) program->addFnAttr(llvm::Attribute::AlwaysInline);

    // constants, mutable memory, activations, state where there is some, parallelFor where it is wanted
    const unsigned memories = hasState() ? 4 : 3;
    llvm::Function* whole =
        exported(entry.name + (bundle_.threads ? "_parallel" : ""), memories + (bundle_.threads ? 1 : 0));
    std::vector<llvm::Value*> given;
    for (unsigned i = 0; i < memories; ++i) given.push_back(whole->getArg(i));
    checkAddresses(given);
    llvm::AllocaInst* bases =
        b.CreateAlloca(llvm::ArrayType::get(pointer(), static_cast<uint64_t>(entry.memory.bases())));
    const auto set = [&](int base, llvm::Value* address) {
      b.CreateStore(address, b.CreateConstInBoundsGEP1_64(pointer(), bases, static_cast<uint64_t>(base)));
    };
    set(MemoryMap::kConstants, given[0]);
    set(MemoryMap::kActivations, given[2]);
    llvm::Value* first = b.CreateConstInBoundsGEP1_64(pointer(), bases, MemoryMap::kFirstPlaceholder);
    llvm::Value* offsets = dataTable(module_, entry.offsets, entry.name + ".places");
    library_.call(b, "place", {first, given[1], offsets, number(static_cast<int64_t>(entry.offsets.size()))},
                  b.getVoidTy());
    for (size_t i = 0; i < entry.stateOffsets.size(); ++i)
      set(entry.memory[entry.memory.states()[i]].base, inside(given[3], entry.stateOffsets[i]));
    llvm::Value* runTime = null();
    if (bundle_.threads) {
      llvm::Value* parallelFor = whole->getArg(memories);
      runTime = b.CreateSelect(b.CreateIsNull(parallelFor), noThreads(), parallelFor);
    }
    b.CreateRet(b.CreateCall(program, {bases, runTime}));
    llvm::Function* alone = whole;
    if (bundle_.threads) {
      alone = exported(entry.name, memories);
      given.clear();
      for (unsigned i = 0; i < memories; ++i) given.push_back(alone->getArg(i));
      given.push_back(null());
      b.CreateRet(b.CreateCall(whole, given));
    }
    functions_.push_back({withState(alone, memories), bundle_.threads ? withState(whole, memories) : nullptr});
  }

  bool hasState() const { return bundle_.stateBytes > 0; }

  llvm::Value* inside(llvm::Value* memory, int64_t offset) {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), memory, static_cast<uint64_t>(offset));
  }

  // In NAME_info every function takes the state's address, whether there is state or not.
  llvm::Function* withState(llvm::Function* function, unsigned memories) {
    if (hasState()) return function;
    const auto parameters = static_cast<unsigned>(function->arg_size());
    llvm::Function* made = exported((function->getName() + ".any").str(), parameters + 1);
    made->setLinkage(llvm::Function::InternalLinkage);
    std::vector<llvm::Value*> given;
    for (unsigned i = 0; i < parameters; ++i) given.push_back(made->getArg(i < memories ? i : i + 1));
    llvm::CallInst* call = b.CreateCall(function, given);
    call->setTailCall();
    b.CreateRet(call);
    return made;
  }

  void emitStateInit() {
    if (!hasState()) return;
    stateInit_ = exported(bundle_.name + "_state_init", 2);
    llvm::Value *constants = stateInit_->getArg(0), *state = stateInit_->getArg(1);
    checkAddresses({constants, state});
    const llvm::Align align(Program::kAlignment);
    for (const BundleState& part : bundle_.states) {
      const auto bytes = static_cast<uint64_t>(part.region.type.bytes());
      if (part.initial == BundleState::kZeros)
        b.CreateMemSet(inside(state, part.offset), b.getInt8(0), bytes, align);
      else
        b.CreateMemCpy(inside(state, part.offset), align, inside(constants, part.initial), align, bytes);
    }
    b.CreateRet(b.getInt32(0));
  }

  // A RunTime without a parallelFor.
  llvm::Constant* noThreads() {
    if (noThreads_ != nullptr) return noThreads_;
    auto* type = llvm::ArrayType::get(pointer(), sizeof(RunTime) / sizeof(void*));
    noThreads_ = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::InternalLinkage,
                                          llvm::Constant::getNullValue(type), bundle_.name + ".alone");
    return noThreads_;
  }

  void emitCheck() {
    llvm::Function* cpu = emitCpuCheck(module_, target_, bundle_.name + ".cpu");
    check_ = exported(bundle_.name + "_check", 1);
    setBaseAttributes(*check_, target_);
    checkAddresses({check_->getArg(0)});
    returnIf(b.CreateNot(b.CreateCall(cpu)), kBundleBadCpu);
    const int64_t seal = bundle_.constants.bytes() - Program::kAlignment;
    const auto word = [&](int64_t offset) {
      return b.CreateLoad(b.getInt64Ty(), inside(check_->getArg(0), seal + offset));
    };
    returnIf(b.CreateICmpNE(word(8), b.getInt64(bundle_.layout)), kBundleBadWeights);
    llvm::Value* hash =
        library_.call(b, "hash_lines", {check_->getArg(0), number(seal / Program::kAlignment)}, b.getInt64Ty());
    returnIf(b.CreateICmpNE(hash, word(0)), kBundleBadWeights);
    b.CreateRet(b.getInt32(0));
  }

  // ---------------------------------------------------------------- what include/aglow/bundle.h declares

  llvm::GlobalVariable* constant(llvm::Constant* value, const std::string& name) {
    auto* global =
        new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, name);
    return global;
  }

  llvm::Constant* text(const std::string& value) {
    llvm::GlobalVariable* global =
        constant(llvm::ConstantDataArray::getString(module_.getContext(), value), bundle_.name + ".text");
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return global;
  }

  llvm::Constant* structure(llvm::ArrayRef<llvm::Constant*> fields) {
    return llvm::ConstantStruct::getAnon(module_.getContext(), fields);
  }

  llvm::Constant* array(const std::vector<llvm::Constant*>& items) {
    if (items.empty()) return null();
    return constant(llvm::ConstantArray::get(llvm::ArrayType::get(items.front()->getType(), items.size()), items),
                    bundle_.name + ".list");
  }

  llvm::Constant* tensor(const std::string& name, const Type& type, int64_t offset) {
    std::vector<llvm::Constant*> dims;
    for (const int64_t dim : type.shape().dims()) dims.push_back(number(dim));
    return structure({text(name), text(std::string(elemName(type.kind()))), text(type.text()), number(type.rank()),
                      array(dims), number(offset), number(type.bytes())});
  }

  llvm::Constant* tensors(const std::vector<BundleTensor>& list) {
    std::vector<llvm::Constant*> items;
    for (const BundleTensor& one : list) items.push_back(tensor(one.name, one.type, one.offset));
    return array(items);
  }

  void emitInfo() {
    std::vector<llvm::Constant*> entries;
    for (size_t i = 0; i < bundle_.entries.size(); ++i) {
      const BundleEntry& entry = bundle_.entries[i];
      llvm::Constant* parallel = functions_[i].parallel == nullptr ? null() : functions_[i].parallel;
      entries.push_back(structure({text(entry.name), functions_[i].alone, parallel, number(entry.mutableBytes),
                                   number(entry.activationBytes()), number(static_cast<int64_t>(entry.inputs.size())),
                                   tensors(entry.inputs), number(static_cast<int64_t>(entry.outputs.size())),
                                   tensors(entry.outputs)}));
    }
    std::vector<llvm::Constant*> states;
    for (const BundleState& state : bundle_.states)
      states.push_back(tensor(state.region.name, state.region.type, state.offset));
    constexpr int64_t kLayout = 2;
    llvm::Constant* info =
        structure({number(kLayout), text(bundle_.name), text(AGLOW_VERSION), text(bundle_.triple), text(bundle_.cpu),
                   text(fmt::format("{}", fmt::join(bundle_.features, " "))), b.getInt64(bundle_.constants.hash()),
                   number(bundle_.constants.bytes()), check_, number(static_cast<int64_t>(entries.size())),
                   array(entries), number(bundle_.stateBytes), number(static_cast<int64_t>(states.size())),
                   array(states), stateInit_ == nullptr ? null() : stateInit_});
    new llvm::GlobalVariable(module_, info->getType(), true, llvm::GlobalValue::ExternalLinkage, info,
                             bundle_.name + "_info");
  }

  struct EntryFunctions {
    llvm::Function *alone, *parallel;
  };

  llvm::Module& module_;
  const Bundle& bundle_;
  const Target& target_;
  Library library_;
  llvm::IRBuilder<> b;
  std::optional<DebugInfo> debug_;
  llvm::GlobalVariable* noThreads_ = nullptr;
  llvm::Function *check_ = nullptr, *stateInit_ = nullptr;
  std::vector<EntryFunctions> functions_;
};

}  // namespace

Result<std::vector<std::string>> generateBundle(const Bundle& bundle, const Target& target,
                                                std::span<const CodeFile> files) {
  std::vector<std::string> contents;
  AGLOW_OK(guarded([&] {
    const QuietContext context;
    const Abandoned<llvm::Module> module(newModule(*context, bundle.name, target));
    const Abandoned<BundleEmitter> emitter(std::make_unique<BundleEmitter>(*module, bundle, target));
    emitter->run();
    checkModule(*module);
    optimizeModule(*module, target);
    for (const CodeFile file : files) contents.push_back(writeModule(*module, target, file));
    return context.status();
  }));
  return contents;
}

}  // namespace aglow::codegen
