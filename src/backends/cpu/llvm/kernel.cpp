// Calls of library kernels: descriptors as constants, element accessors for every kind, and what stands on a result as
// the kernel's epilogue.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/cpu/llvm/narrow_dot.h"
#include "backends/cpu/llvm/points.h"
#include "codegen/nest/build.h"
#include "codegen/nest/kinds.h"
#include "inst/fused.h"

namespace aglow::codegen {

namespace {

using Param = cpu::FunctionParam;

// The kind in which a kernel takes and gives elements.
ElemKind kindOf(Param::Domain domain, ElemKind element) {
  switch (domain) {
    case Param::Domain::F32:
      return ElemKind::Float32;
    case Param::Domain::F64:
      return ElemKind::Float64;
    case Param::Domain::I64:
      break;
  }
  return isSigned(nest::computedKind(element)) ? ElemKind::Int64 : ElemKind::UInt64;
}

class KernelEmitter {
public:
  KernelEmitter(const EmitContext& context, const cpu::KernelPlan& plan, const Instr& instr)
      : context_(context), plan_(plan), instr_(instr), b(context.module.getContext()) {
    // The kernel's own addresses come first, as the contract says; a value that nobody stores has none.
    const std::span<const Operand> operands = instr.operands;
    const Instr& anchor = bodyOf(instr).front();
    for (const Operand& result : anchor.results()) addresses_.push_back(inMemory(operands, result.region));
    for (const Operand& input : anchor.inputs()) addresses_.push_back(input.region);
    for (const Operand& operand : operands)
      if (operand.access == Access::Scratch) addresses_.push_back(operand.region);
    if (bodyOf(instr).size() > 1)
      for (const Operand& operand : operands)
        if (operand.access != Access::Scratch) addresses_.push_back(operand.region);
  }

  Steps run(const std::string& name, bool shared) {
    Steps result;
    for (const cpu::KernelStep& step : plan_.steps) {
      Step made{.units = step.units, .rounds = step.rounds, .addresses = addressesOf(step)};
      if (shared)
        share(made, step, name);
      else
        made.function = specialised(step, name);
      result.push_back(std::move(made));
    }
    return result;
  }

private:
  static RegionId inMemory(std::span<const Operand> operands, RegionId region) {
    const auto same = [&](const Operand& o) { return o.region == region; };
    return std::any_of(operands.begin(), operands.end(), same) ? region : kNoRegion;
  }

  const Type& typeOf(RegionId id) const { return context_.program[id].type; }

  std::vector<StepAddress> addressesOf(const cpu::KernelStep& step) const {
    std::vector<StepAddress> list;
    for (const cpu::KernelAddress& address : step.addresses)
      list.push_back({addresses_[static_cast<size_t>(address.operand)], address.offset});
    if (list.empty())
      for (const RegionId region : addresses_) list.push_back({region});
    return list;
  }

  // The first few problems of a kernel get functions of their own; the rest of a general one's share a function, which
  // finds the descriptor after the other addresses.
  void share(Step& made, const cpu::KernelStep& step, const std::string& name) {
    constexpr int kMostSpecialised = 64;
    SharedKernels& shared = context_.shared;
    std::string general = fmt::format("{} {}", step.kernel, made.addresses.size());
    for (const Param& param : step.functions) general += " " + function(param, name)->getName().str();
    const std::string bytes(reinterpret_cast<const char*>(step.descriptor.data()), step.descriptor.size());
    const std::string own = general + '\0' + bytes;
    int& count = shared.specialised[step.kernel];
    if (!step.general || count < kMostSpecialised || shared.functions.contains(own)) {
      llvm::Function*& known = shared.functions[own];
      count += known == nullptr ? 1 : 0;
      if (known == nullptr) known = specialised(step, name);
      made.function = known;
      return;
    }
    llvm::Function*& known = shared.functions[general];
    if (known == nullptr) known = calling(step, name, made.addresses.size());
    made.function = known;
    const auto [place, fresh] = shared.places.try_emplace(bytes, static_cast<int64_t>(shared.data.size()));
    if (fresh) shared.data += bytes;
    made.addresses.push_back({StepAddress::kData, place->second});
  }

  llvm::Function* specialised(const cpu::KernelStep& step, const std::string& name) {
    return calling(step, name, std::nullopt);
  }

  // A call of the kernel with its descriptor as a constant, or from one of the addresses.
  llvm::Function* calling(const cpu::KernelStep& step, const std::string& name, std::optional<size_t> slot) {
    llvm::Function* wrapper = context_.newStep(name);
    std::vector<llvm::Value*> functions;
    for (const Param& param : step.functions) functions.push_back(function(param, name));
    b.SetInsertPoint(&wrapper->getEntryBlock());
    llvm::Value* shape = slot ? addressSlot(b, wrapper->getArg(0), static_cast<int>(*slot)) : descriptor(step);
    std::vector<llvm::Value*> arguments = {shape, wrapper->getArg(0), wrapper->getArg(1), wrapper->getArg(2)};
    arguments.insert(arguments.end(), functions.begin(), functions.end());
    b.CreateRet(context_.library.call(b, step.kernel, arguments, b.getInt32Ty()));
    return wrapper;
  }

  llvm::Constant* descriptor(const cpu::KernelStep& step) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(step.descriptor.data());
    llvm::Constant* data =
        llvm::ConstantDataArray::get(context_.module.getContext(), llvm::ArrayRef(bytes, step.descriptor.size()));
    auto* global = new llvm::GlobalVariable(context_.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                            data, "shape");
    global->setAlignment(llvm::Align(8));
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    return global;
  }

  llvm::Function* function(const Param& param, const std::string& name) {
    if (param.kind == Param::Kind::Epilogue) return epilogue(name);
    if (param.kind == Param::Kind::Dot) return dot("dot", b.getInt32Ty(), byteDot);
    if (param.kind == Param::Kind::PairDot) return dot("pair_dot", b.getFloatTy(), pairDot);
    if (param.kind == Param::Kind::BlockDot) return dot("block_dot", b.getInt32Ty(), blockDot);
    if (param.kind == Param::Kind::PairBlockDot) return dot("pair_block_dot", b.getFloatTy(), blockDot);
    const Instr& anchor = bodyOf(instr_).front();
    const bool load = param.kind == Param::Kind::Load;
    const std::span<const Operand> side = load ? anchor.inputs() : anchor.results();
    return accessor(typeOf(side[static_cast<size_t>(param.operand)].region).kind(), param.domain, load);
  }

  llvm::Function* newFunction(llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters, const std::string& name) {
    auto* f = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false),
                                     llvm::Function::InternalLinkage, name, context_.module);
    setTargetAttributes(*f, context_.target);
    f->addFnAttr(llvm::Attribute::NoUnwind);
    if (context_.target.options().optLevel > 0) f->addFnAttr(llvm::Attribute::AlwaysInline);
    b.SetInsertPoint(llvm::BasicBlock::Create(context_.module.getContext(), "entry", f));
    return f;
  }

  llvm::Function* accessor(ElemKind kind, Param::Domain domain, bool load) {
    const std::string name = fmt::format("{}_{}_{}", load ? "load" : "store", elemName(kind), static_cast<int>(domain));
    if (llvm::Function* known = context_.module.getFunction(name)) return known;
    LaneBuilder one(b, context_.library, context_.target, 1);
    const ElemKind wide = kindOf(domain, kind), stored = storageKind(kind);
    const auto convert = [&](llvm::Value* value, ElemKind from, ElemKind to) {
      for (const ElemKind next : nest::conversion(from, to)) {
        value = one.convert(value, from, next);
        from = next;
      }
      return value;
    };
    if (load) {
      llvm::Function* f = newFunction(one.type(wide), {b.getPtrTy(), b.getInt64Ty()}, name);
      b.CreateRet(convert(one.load(stored, f->getArg(0), f->getArg(1)), stored, wide));
      return f;
    }
    llvm::Function* f = newFunction(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), one.type(wide)}, name);
    one.store(stored, convert(f->getArg(2), wide, stored), f->getArg(0), f->getArg(1));
    b.CreateRetVoid();
    return f;
  }

  llvm::Function* dot(std::string_view kind, llvm::Type* sum, decltype(byteDot) emit) {
    const auto width = static_cast<unsigned>(context_.target.shape().lanes);
    const std::string name = fmt::format("{}_w{}", kind, width);
    if (llvm::Function* known = context_.module.getFunction(name)) return known;
    llvm::Type* sums = llvm::FixedVectorType::get(sum, width);
    llvm::Type* groups = llvm::FixedVectorType::get(b.getInt32Ty(), width);
    llvm::Function* f = newFunction(sums, {sums, groups, groups}, name);
    b.CreateRet(emit(b, context_.target, f->getArg(0), f->getArg(1), f->getArg(2)));
    return f;
  }

  // ---------------------------------------------------------------- epilogue

  llvm::Function* epilogue(const std::string& name) {
    if (epilogue_ != nullptr) return epilogue_;
    const int width = context_.target.shape().lanes;
    // What kernels give: f32, sums of bytes, or bytes.
    const ElemKind given = typeOf(bodyOf(instr_).front().results()[0].region).kind();
    llvm::Type* one = LaneBuilder(b, context_.library, context_.target, 1).type(given);
    llvm::Type* lanes = llvm::FixedVectorType::get(one, static_cast<unsigned>(width));
    llvm::Type* i64 = b.getInt64Ty();
    epilogue_ = newFunction(b.getVoidTy(), {lanes, b.getPtrTy(), i64, i64, i64, i64, i64}, name + ".epilogue");
    const nest::Nest nest = nest::epilogueOf(context_.program, instr_, plan_.epilogueDims);
    std::vector<llvm::Value*> addresses;
    for (const Operand& operand : instr_.operands) {
      const auto slot = std::find(addresses_.begin(), addresses_.end(), operand.region) - addresses_.begin();
      addresses.push_back(addressSlot(b, epilogue_->getArg(1), static_cast<int>(slot)));
    }
    PointEmitter points(context_, b, nest, std::move(addresses));
    const auto emitPoints = [&](int lanes, llvm::Value* given, llvm::Value* last) {
      const auto at = [&](size_t access) { return offset(nest.accesses[access], last); };
      points.each(nest.stages.front(), {.width = lanes, .offset = at, .given = given});
    };
    llvm::LLVMContext& c = context_.module.getContext();
    llvm::BasicBlock* whole = llvm::BasicBlock::Create(c, "whole", epilogue_);
    llvm::BasicBlock* part = llvm::BasicBlock::Create(c, "part", epilogue_);
    llvm::AllocaInst* spilled = b.CreateAlloca(lanes);
    llvm::Value* isWhole = b.CreateICmpEQ(epilogue_->getArg(6), b.getInt64(static_cast<uint64_t>(width)));
    b.CreateCondBr(isWhole, whole, part);

    b.SetInsertPoint(whole);
    emitPoints(width, epilogue_->getArg(0), epilogue_->getArg(5));
    b.CreateRetVoid();

    b.SetInsertPoint(part);
    b.CreateStore(epilogue_->getArg(0), spilled);
    emitLoop(b, b.getInt64(0), epilogue_->getArg(6), 1, [&](llvm::Value* i) {
      llvm::Value* element = b.CreateLoad(one, b.CreateInBoundsGEP(one, spilled, i));
      emitPoints(1, element, b.CreateAdd(epilogue_->getArg(5), i));
    });
    b.CreateRetVoid();
    return epilogue_;
  }

  // From the four coordinates, the last of which is `last`.
  llvm::Value* offset(const nest::Access& access, llvm::Value* last) {
    llvm::Value* sum = b.getInt64(static_cast<uint64_t>(access.offset));
    for (unsigned k = 0; k < access.strides.size(); ++k) {
      if (access.strides[k] == 0) continue;
      llvm::Value* coordinate = k == 3 ? last : epilogue_->getArg(2 + k);
      sum = b.CreateAdd(sum, b.CreateMul(coordinate, b.getInt64(static_cast<uint64_t>(access.strides[k]))));
    }
    return sum;
  }

  const EmitContext& context_;
  const cpu::KernelPlan& plan_;
  const Instr& instr_;
  llvm::IRBuilder<> b;
  std::vector<RegionId> addresses_;
  llvm::Function* epilogue_ = nullptr;
};

}  // namespace

Steps emitKernel(const EmitContext& context, const cpu::KernelPlan& plan, const Instr& instr, const std::string& name,
                 bool shared) {
  return KernelEmitter(context, plan, instr).run(name, shared);
}

}  // namespace aglow::codegen
