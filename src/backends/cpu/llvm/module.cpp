// The body of a program: one call after the other, instructions of equal shape sharing their functions.
#include "backends/cpu/llvm/module.h"

#include <fmt/format.h>
#include <llvm/Target/TargetMachine.h>

#include <unordered_map>

#include "backends/cpu/bundle/c_names.h"
#include "backends/cpu/kernels/table.h"
#include "backends/cpu/llvm/debug_info.h"
#include "backends/cpu/llvm/steps.h"
#include "inst/cost.h"

namespace aglow::codegen {

namespace {

// Microseconds below which an instruction is done sooner than a second thread is told of it.
constexpr double kWorthThreads = 8;

class ModuleEmitter {
public:
  ModuleEmitter(llvm::Module& module, Library& library, const Program& program, const MemoryMap& memory,
                const Target& target, const CodeOptions& options, DebugInfo* debug, const Listing* listing)
      : module_(module),
        library_(library),
        context_{module, library_, target, program},
        program_(program),
        memory_(memory),
        options_(options),
        debug_(debug),
        listing_(listing),
        b(module.getContext()) {}

  llvm::Function* run() {
    begin();
    for (size_t i = 0; i < program_.instrs.size(); ++i) emit(program_.instrs[i], i);
    b.CreateRet(b.getInt32(0));
    slots_->setOperand(0, b.getInt32(static_cast<uint32_t>(std::max<size_t>(maxSlots_, 1))));
    return function_;
  }

private:
  llvm::Type* pointer() { return b.getPtrTy(); }

  void begin() {
    auto* type = llvm::FunctionType::get(b.getInt32Ty(), {pointer(), pointer()}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, options_.name, module_);
    setTargetAttributes(*function_, context_.target);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    b.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));
    if (debug_ != nullptr) {
      // A list of calls has no speed to lose, and so keeps its variables and the order of its lines.
      function_->removeFnAttr(llvm::Attribute::OptimizeForSize);
      function_->addFnAttr(llvm::Attribute::OptimizeNone);
      function_->addFnAttr(llvm::Attribute::NoInline);
      debug_->attach(*function_, options_.name, listing_->file, listing_->programLine());
      debug_->setLine(b, listing_->programLine());
    }
    slots_ = b.CreateAlloca(pointer(), b.getInt32(1));
  }

  // Bases are loaded where they are needed: thousands of them would not fit into registers.
  llvm::Value* address(RegionId region) {
    if (region == kNoRegion) return llvm::ConstantPointerNull::get(b.getPtrTy());
    const Address a = memory_[region];
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), addressSlot(b, function_->getArg(0), a.base),
                                        static_cast<uint64_t>(a.offset));
  }

  void emit(const Instr& instr, size_t number) {
    if (instr.isMarker() || instr.kind == Instr::Kind::CopyWait) return;
    if (debug_ != nullptr) {
      debug_->setLine(b, DebugInfo::kNoLine);
      for (const Operand& operand : instr.operands)
        if (operand.region != kNoRegion) debug_->declare(b, program_[operand.region], address(operand.region));
      debug_->setLine(b, listing_->lines[number]);
    }
    llvm::BasicBlock* after = nullptr;
    if (instr.predicate != kNoRegion) after = emitPredicate(instr);
    observe(number, 0);
    if (instr.kind == Instr::Kind::Copy || instr.kind == Instr::Kind::CopyStart)
      emitCopy(instr);
    else
      emitSteps(instr, number);
    observe(number, 1);
    if (after != nullptr) {
      b.CreateBr(after);
      b.SetInsertPoint(after);
    }
  }

  llvm::BasicBlock* emitPredicate(const Instr& instr) {
    llvm::LLVMContext& c = module_.getContext();
    llvm::BasicBlock* work = llvm::BasicBlock::Create(c, "work", function_);
    llvm::BasicBlock* after = llvm::BasicBlock::Create(c, "skip", function_);
    const auto rows = static_cast<uint64_t>(program_[instr.predicate].type.elements());
    llvm::Value* any = library_.call(b, "any_true", {address(instr.predicate), b.getInt64(rows)}, b.getInt1Ty());
    b.CreateCondBr(any, work, after);
    b.SetInsertPoint(work);
    return after;
  }

  void emitCopy(const Instr& instr) {
    const RegionId to = instr.operands[0].region;
    const auto bytes = static_cast<uint64_t>(program_[to].type.bytes());
    const llvm::Align align(1);
    b.CreateMemMove(address(to), align, address(instr.operands[1].region), align, bytes);
  }

  void emitSteps(const Instr& instr, size_t number) {
    const Steps steps = stepsOf(instr, number);
    maxSlots_ = std::max(maxSlots_, steps.addresses.size());
    for (size_t slot = 0; slot < steps.addresses.size(); ++slot)
      b.CreateStore(address(steps.addresses[slot]), b.CreateConstInBoundsGEP1_64(pointer(), slots_, slot));
    for (const Step& step : steps.steps) {
      if (step.units == 0) continue;
      llvm::Value* units = b.getInt64(static_cast<uint64_t>(step.units));
      llvm::Value* status = nullptr;
      if (options_.threads && step.units > 1 && microseconds(instr) >= kWorthThreads)
        status = b.CreateCall(dispatcher(), {function_->getArg(1), step.function, slots_, units});
      else
        status = b.CreateCall(step.function, {slots_, b.getInt64(0), units});
      returnIfFailed(status, number);
    }
  }

  void returnIfFailed(llvm::Value* status, size_t number) {
    llvm::LLVMContext& c = module_.getContext();
    llvm::BasicBlock* failed = llvm::BasicBlock::Create(c, "failed", function_);
    llvm::BasicBlock* fine = llvm::BasicBlock::Create(c, "fine", function_);
    b.CreateCondBr(b.CreateICmpEQ(status, b.getInt32(0)), fine, failed);
    b.SetInsertPoint(failed);
    b.CreateRet(b.CreateOr(status, b.getInt32(static_cast<uint32_t>(number << kStatusBits))));
    b.SetInsertPoint(fine);
  }

  // A rough time for one thread on any of today's processors.
  double microseconds(const Instr& instr) const {
    constexpr double kFlops = 5e4, kBytes = 1e4;  // in a microsecond
    const Cost cost = costOf(program_, instr);
    return cost.flops / kFlops + static_cast<double>(cost.bytes) / kBytes;
  }

  // i32 dispatch(runTime, step, addresses, units)
  llvm::Function* dispatcher() {
    if (dispatcher_ != nullptr) return dispatcher_;
    llvm::LLVMContext& c = module_.getContext();
    llvm::Type* i64 = b.getInt64Ty();
    auto* type = llvm::FunctionType::get(b.getInt32Ty(), {pointer(), pointer(), pointer(), i64}, false);
    dispatcher_ = llvm::Function::Create(type, llvm::Function::InternalLinkage, options_.name + ".dispatch", module_);
    setTargetAttributes(*dispatcher_, context_.target);
    dispatcher_->addFnAttr(llvm::Attribute::NoInline);
    llvm::IRBuilder<> d(llvm::BasicBlock::Create(c, "entry", dispatcher_));
    llvm::BasicBlock* many = llvm::BasicBlock::Create(c, "many", dispatcher_);
    llvm::BasicBlock* one = llvm::BasicBlock::Create(c, "one", dispatcher_);
    llvm::Value *runTime = dispatcher_->getArg(0), *step = dispatcher_->getArg(1);
    llvm::Value* parallel = addressSlot(d, runTime, 0);
    d.CreateCondBr(d.CreateIsNull(parallel), one, many);
    d.SetInsertPoint(one);
    auto* stepType = llvm::FunctionType::get(d.getInt32Ty(), {pointer(), i64, i64}, false);
    d.CreateRet(d.CreateCall(stepType, step, {dispatcher_->getArg(2), d.getInt64(0), dispatcher_->getArg(3)}));
    d.SetInsertPoint(many);
    auto* parallelType = llvm::FunctionType::get(d.getInt32Ty(), {pointer(), pointer(), pointer(), i64}, false);
    d.CreateRet(d.CreateCall(parallelType, parallel,
                             {addressSlot(d, runTime, 1), step, dispatcher_->getArg(2), dispatcher_->getArg(3)}));
    return dispatcher_;
  }

  void observe(size_t number, int after) {
    if (!options_.observed) return;
    llvm::Value* hook = addressSlot(b, function_->getArg(1), 2);
    llvm::Value* context = addressSlot(b, function_->getArg(1), 3);
    auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer(), b.getInt32Ty(), b.getInt32Ty()}, false);
    b.CreateCall(type, hook,
                 {context, b.getInt32(static_cast<uint32_t>(number)), b.getInt32(static_cast<uint32_t>(after))});
  }

  // ---------------------------------------------------------------- functions and their sharing

  // Instructions with the same key differ in addresses only.
  std::string keyOf(const Instr& instr, std::vector<RegionId>& order) const {
    std::string key;
    const auto number = [&](RegionId region) {
      if (region == kNoRegion) return std::string("-");
      const auto it = std::find(order.begin(), order.end(), region);
      const auto index = it - order.begin();
      if (it == order.end()) order.push_back(region);
      return fmt::format("{}:{}", index, program_[region].type.text());
    };
    for (const Operand& operand : instr.operands)
      key += fmt::format("{}{} ", static_cast<int>(operand.access), number(operand.region));
    for (const Instr& member : bodyOf(instr)) {
      key += fmt::format("\n{}", attributesText(member.attrs));
      for (const Operand& operand : member.operands)
        key += fmt::format(" {}{}", static_cast<int>(operand.access), number(operand.region));
    }
    return key;
  }

  static std::string attributesText(const Attrs& attrs) {
    std::string text(attrs.op().name);
    for (const AttrValue& value : attrs.values()) {
      text += ';';
      std::visit(
          [&](const auto& v) {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<T, ElemKind>)
              text += elemName(v);
            else if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>>)
              for (const auto item : v) text += fmt::format("{},", item);
            else
              text += fmt::format("{}", v);
          },
          value);
    }
    return text;
  }

  Steps stepsOf(const Instr& instr, size_t number) {
    if (options_.apart) return stepsApart(instr, number);
    std::vector<RegionId> order;
    const std::string key = keyOf(instr, order);
    if (const auto it = shared_.find(key); it != shared_.end()) {
      Steps steps = it->second.steps;
      for (RegionId& region : steps.addresses) {
        if (region == kNoRegion) continue;
        const auto& known = it->second.order;
        region = order[static_cast<size_t>(std::find(known.begin(), known.end(), region) - known.begin())];
      }
      return steps;
    }
    Steps steps = emitFunctions(instr, options_.name + "." + functionName(bodyOf(instr)));
    shared_[key] = {steps, order};
    return steps;
  }

  Steps stepsApart(const Instr& instr, size_t number) {
    const std::string name = fmt::format("{}.{}", functionName(bodyOf(instr)), cIdentifier(instr.origin));
    Steps steps = emitFunctions(instr, name);
    for (const Step& step : steps.steps) {
      if (debug_ == nullptr || step.function->getSubprogram() != nullptr) continue;
      debug_->attach(*step.function, instr.origin, listing_->file, listing_->lines[number]);
      debug_->declareSlots(*step.function, program_, steps.addresses);
    }
    return steps;
  }

  Steps emitFunctions(const Instr& instr, const std::string& name) {
    const std::span<const Instr> body = bodyOf(instr);
    if (isLoop(body)) return emitGroup(context_, body, instr.operands, name);
    const InstrProblem problem(program_, body.front());
    const cpu::KernelPlan plan = cpu::planKernel(problem.problem(), context_.target.shape());
    return emitKernel(context_, plan, body, instr.operands, name);
  }

  static std::string functionName(std::span<const Instr> body) {
    std::string name;
    for (const Instr& instr : body.first(std::min<size_t>(body.size(), 6))) {
      if (!name.empty()) name += '_';
      for (const char c : instr.attrs.op().name) name += static_cast<char>(std::tolower(c));
    }
    return name;
  }

  struct Shared {
    Steps steps;
    std::vector<RegionId> order;
  };

  llvm::Module& module_;
  Library& library_;
  EmitContext context_;
  const Program& program_;
  const MemoryMap& memory_;
  const CodeOptions& options_;
  DebugInfo* debug_;
  const Listing* listing_;
  llvm::IRBuilder<> b;
  llvm::Function* function_ = nullptr;
  llvm::Function* dispatcher_ = nullptr;
  llvm::AllocaInst* slots_ = nullptr;
  size_t maxSlots_ = 0;
  std::unordered_map<std::string, Shared> shared_;
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
  return ModuleEmitter(module, library, program, memory, target, options, debug, listing).run();
}

std::string entryName(const CodeOptions& options, size_t program) {
  return program == 0 ? options.name : fmt::format("{}.{}", options.name, program);
}

std::unique_ptr<llvm::Module> emitModule(llvm::LLVMContext& context, std::span<const Program> programs,
                                         std::span<const MemoryMap> memory, const Target& target,
                                         const CodeOptions& options) {
  std::unique_ptr<llvm::Module> module = newModule(context, options.name, target);
  Library library(*module, target);
  for (size_t i = 0; i < programs.size(); ++i) {
    CodeOptions own = options;
    own.name = entryName(options, i);
    emitProgram(*module, library, programs[i], memory[i], target, own);
  }
  library.link();
  return module;
}

}  // namespace aglow::codegen
