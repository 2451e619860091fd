// Modules, and the function of a program in them: a loop over tables, or with debug information a list of calls.
#include "backends/cpu/llvm/module.h"

#include <fmt/format.h>
#include <llvm/Target/TargetMachine.h>

#include "backends/cpu/llvm/debug_info.h"
#include "backends/cpu/llvm/program_tables.h"

namespace aglow::codegen {

namespace {

// A program that can be followed line by line: its calls one after the other.
class ListEmitter {
public:
  ListEmitter(llvm::IRBuilder<>& builder, Library& library, StepFunctions& functions, const Program& program,
              const MemoryMap& memory, const CodeOptions& options, DebugInfo& debug, const Listing& listing)
      : b(builder),
        function_(builder.GetInsertBlock()->getParent()),
        library_(library),
        functions_(functions),
        program_(program),
        memory_(memory),
        options_(options),
        debug_(debug),
        listing_(listing) {}

  void run() {
    // A list of calls has no speed to lose, and so keeps its variables and the order of its lines.
    function_->removeFnAttr(llvm::Attribute::OptimizeForSize);
    function_->addFnAttr(llvm::Attribute::OptimizeNone);
    function_->addFnAttr(llvm::Attribute::NoInline);
    debug_.attach(*function_, options_.name, listing_.file, listing_.programLine());
    debug_.setLine(b, listing_.programLine());
    slots_ = b.CreateAlloca(pointer(), b.getInt32(1));
    for (size_t i = 0; i < program_.instrs.size(); ++i) emit(program_.instrs[i], i);
    b.CreateRet(b.getInt32(0));
    slots_->setOperand(0, b.getInt32(static_cast<uint32_t>(mostSlots_)));
  }

private:
  llvm::Type* pointer() { return b.getPtrTy(); }
  llvm::BasicBlock* newBlock(const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function_); }

  llvm::Value* address(RegionId region, int64_t offset = 0) {
    if (region == kNoRegion) return llvm::ConstantPointerNull::get(b.getPtrTy());
    const Address a = memory_[region];
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), addressSlot(b, function_->getArg(0), a.base),
                                        static_cast<uint64_t>(a.offset + offset));
  }

  void emit(const Instr& instr, size_t number) {
    const Steps steps = functions_.of(instr);
    if (steps.empty()) return;
    debug_.setLine(b, DebugInfo::kNoLine);
    for (const Operand& operand : instr.operands)
      if (operand.region != kNoRegion) debug_.declare(b, program_[operand.region], address(operand.region));
    debug_.setLine(b, listing_.lines[number]);
    llvm::BasicBlock* after = instr.predicate == kNoRegion ? nullptr : newBlock("skip");
    if (after != nullptr) {
      const auto rows = static_cast<uint64_t>(program_[instr.predicate].type.elements());
      llvm::BasicBlock* work = newBlock("work");
      llvm::Value* any = library_.call(b, "any_true", {address(instr.predicate), b.getInt64(rows)}, b.getInt1Ty());
      b.CreateCondBr(any, work, after);
      b.SetInsertPoint(work);
    }
    for (const Step& step : steps)
      call(step, instr, number, options_.threads ? functions_.threadsWorth(instr, step) : 1);
    if (after == nullptr) return;
    b.CreateBr(after);
    b.SetInsertPoint(after);
  }

  void call(const Step& step, const Instr& instr, size_t number, int threads) {
    if (instr.kind == Instr::Kind::Compute || instr.kind == Instr::Kind::Fused) describe(step, instr, number);
    mostSlots_ = std::max(mostSlots_, step.addresses.size());
    for (size_t slot = 0; slot < step.addresses.size(); ++slot)
      b.CreateStore(address(step.addresses[slot].region, step.addresses[slot].offset),
                    b.CreateConstInBoundsGEP1_64(pointer(), slots_, slot));
    const auto number64 = [&](int64_t value) { return b.getInt64(static_cast<uint64_t>(value)); };
    llvm::Value* status = threads > 1
                              ? library_.call(b, "spread",
                                              {function_->getArg(1), step.function, slots_, number64(step.units),
                                               number64(step.rounds), b.getInt32(static_cast<uint32_t>(threads))},
                                              b.getInt32Ty())
                              : b.CreateCall(step.function, {slots_, number64(0), number64(step.rounds * step.units)});
    llvm::BasicBlock *failed = newBlock("failed"), *fine = newBlock("fine");
    b.CreateCondBr(b.CreateICmpEQ(status, b.getInt32(0)), fine, failed);
    b.SetInsertPoint(failed);
    b.CreateRet(b.CreateOr(status, b.getInt32(static_cast<uint32_t>(number << kStatusBits))));
    b.SetInsertPoint(fine);
  }

  void describe(const Step& step, const Instr& instr, size_t number) {
    if (step.function->getSubprogram() != nullptr) return;
    debug_.attach(*step.function, instr.origin, listing_.file, listing_.lines[number]);
    debug_.declareSlots(*step.function, program_, step.addresses);
  }

  llvm::IRBuilder<>& b;
  llvm::Function* function_;
  Library& library_;
  StepFunctions& functions_;
  const Program& program_;
  const MemoryMap& memory_;
  const CodeOptions& options_;
  DebugInfo& debug_;
  const Listing& listing_;
  llvm::AllocaInst* slots_ = nullptr;
  size_t mostSlots_ = 1;
};

}  // namespace

std::unique_ptr<llvm::Module> newModule(llvm::LLVMContext& context, const std::string& name, const Target& target) {
  auto module = std::make_unique<llvm::Module>(name, context);
  module->setTargetTriple(target.triple());
  module->setDataLayout(target.machine().createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  return module;
}

llvm::Function* emitProgram(llvm::Module& module, Library& library, const Program& program, const MemoryMap& memory,
                            const Target& target, const CodeOptions& options, DebugInfo* debug,
                            const Listing* listing) {
  llvm::IRBuilder<> b(module.getContext());
  auto* type = llvm::FunctionType::get(b.getInt32Ty(), {b.getPtrTy(), b.getPtrTy()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, options.name, module);
  setTargetAttributes(*function, target);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  StepFunctions functions(module, library, program, target, options);
  if (debug != nullptr)
    ListEmitter(b, library, functions, program, memory, options, *debug, *listing).run();
  else
    emitTables(b, library, functions, program, memory, options);
  return function;
}

std::string entryName(const CodeOptions& options, size_t program) {
  return program == 0 ? options.name : fmt::format("{}.{}", options.name, program);
}

}  // namespace aglow::codegen
