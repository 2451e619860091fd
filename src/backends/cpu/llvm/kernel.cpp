// Calls of library kernels: descriptors as constants, element accessors for every kind, and what stands on a result as
// the kernel's epilogue.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/cpu/llvm/steps.h"

namespace aglow::codegen {

namespace {

using Param = cpu::FunctionParam;

LaneDomain laneDomain(Param::Domain domain, ElemKind kind) {
  switch (domain) {
    case Param::Domain::F32:
      return {LaneDomain::Type::F32, false};
    case Param::Domain::F64:
      return {LaneDomain::Type::F64, false};
    case Param::Domain::I64:
      break;
  }
  return {LaneDomain::Type::I64, domainOfKind(kind).isSigned};
}

class KernelEmitter {
public:
  KernelEmitter(const EmitContext& context, const cpu::KernelPlan& plan, std::span<const Instr> body,
                std::span<const Operand> operands)
      : context_(context), plan_(plan), body_(body), b(context.module.getContext()) {
    // The kernel's own addresses come first, as the contract says; a value that nobody stores has none.
    const Instr& anchor = body.front();
    for (const Operand& result : anchor.results()) addresses_.push_back(inMemory(operands, result.region));
    for (const Operand& input : anchor.inputs()) addresses_.push_back(input.region);
    for (const Operand& operand : operands)
      if (operand.access == Access::Scratch) addresses_.push_back(operand.region);
    if (body.size() > 1)
      for (const Operand& operand : operands)
        if (operand.access != Access::Scratch) addresses_.push_back(operand.region);
  }

  Steps run(const std::string& name, bool shared) {
    Steps result;
    for (const cpu::KernelStep& step : plan_.steps) {
      Step made{.units = step.units, .addresses = addressesOf(step)};
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
  // finds the descriptor behind the other addresses.
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
    const Instr& anchor = body_.front();
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
    const LaneDomain wide = laneDomain(domain, kind);
    llvm::Type* value = one.domainType(wide);
    if (load) {
      llvm::Function* f = newFunction(value, {b.getPtrTy(), b.getInt64Ty()}, name);
      b.CreateRet(one.number(one.widen(kind, one.load(kind, f->getArg(0), f->getArg(1)), wide), wide));
      return f;
    }
    llvm::Function* f = newFunction(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), value}, name);
    one.store(kind, one.narrow(kind, {f->getArg(2)}, wide), f->getArg(0), f->getArg(1));
    b.CreateRetVoid();
    return f;
  }

  // ---------------------------------------------------------------- epilogue

  llvm::Function* epilogue(const std::string& name) {
    if (epilogue_ != nullptr) return epilogue_;
    const int width = context_.target.shape().lanes;
    llvm::Type* lanes = llvm::FixedVectorType::get(b.getFloatTy(), static_cast<unsigned>(width));
    llvm::Type* i64 = b.getInt64Ty();
    epilogue_ = newFunction(b.getVoidTy(), {lanes, b.getPtrTy(), i64, i64, i64, i64, i64}, name + ".epilogue");
    for (size_t slot = 0; slot < addresses_.size(); ++slot)
      pointers_.push_back(addressSlot(b, epilogue_->getArg(1), static_cast<int>(slot)));
    llvm::LLVMContext& c = context_.module.getContext();
    llvm::BasicBlock* whole = llvm::BasicBlock::Create(c, "whole", epilogue_);
    llvm::BasicBlock* part = llvm::BasicBlock::Create(c, "part", epilogue_);
    llvm::AllocaInst* spilled = b.CreateAlloca(lanes);
    llvm::Value* isWhole = b.CreateICmpEQ(epilogue_->getArg(6), b.getInt64(static_cast<uint64_t>(width)));
    b.CreateCondBr(isWhole, whole, part);

    b.SetInsertPoint(whole);
    emitElements(width, epilogue_->getArg(0), epilogue_->getArg(5));
    b.CreateRetVoid();

    b.SetInsertPoint(part);
    b.CreateStore(epilogue_->getArg(0), spilled);
    emitLoop(b, b.getInt64(0), epilogue_->getArg(6), 1, [&](llvm::Value* i) {
      llvm::Value* element = b.CreateLoad(b.getFloatTy(), b.CreateInBoundsGEP(b.getFloatTy(), spilled, i));
      emitElements(1, element, b.CreateAdd(epilogue_->getArg(5), i));
    });
    b.CreateRetVoid();
    return epilogue_;
  }

  llvm::Value* offset(RegionId region, llvm::Value* last, bool& same) {
    const Shape& shape = typeOf(body_.front().results()[0].region).shape();
    const auto strides = stridesInView(typeOf(region).shape(), shape, plan_.epilogueDims);
    AGLOW_CHECK(strides.has_value(), fmt::format("'{}' cannot be part of an epilogue", context_.program[region].name));
    llvm::Value* sum = b.getInt64(0);
    for (unsigned k = 0; k < 4; ++k) {
      if ((*strides)[k] == 0) continue;
      llvm::Value* coordinate = k == 3 ? last : epilogue_->getArg(2 + k);
      sum = b.CreateAdd(sum, b.CreateMul(coordinate, b.getInt64(static_cast<uint64_t>((*strides)[k]))));
    }
    same = (*strides)[3] == 0;
    return sum;
  }

  llvm::Value* pointer(RegionId region) const {
    const auto it = std::find(addresses_.begin(), addresses_.end(), region);
    return it == addresses_.end() ? nullptr : pointers_[static_cast<size_t>(it - addresses_.begin())];
  }

  void emitElements(int width, llvm::Value* value, llvm::Value* last) {
    InstrEmitter emitter(context_, b, width);
    std::map<RegionId, llvm::Value*> values = {{body_.front().results()[0].region, value}};
    std::vector<RegionId> computed = {body_.front().results()[0].region};
    const auto read = [&](RegionId region) {
      llvm::Value*& known = values[region];
      if (known != nullptr) return known;
      bool same = false;
      llvm::Value* at = offset(region, last, same);
      known = emitter.lanes().load(typeOf(region).kind(), pointer(region), at, same);
      return known;
    };
    for (const Instr& instr : body_.subspan(1)) {
      const auto operand = [&](int i) { return read(instr.inputs()[static_cast<size_t>(i)].region); };
      const RegionId result = instr.results()[0].region;
      values[result] = emitter.emit(instr, operand, [](const std::vector<float>&, const Type&) -> llvm::Value* {
        AGLOW_CHECK(false, "quantization by axis is no epilogue");
      });
      computed.push_back(result);
    }
    for (const RegionId region : computed) {
      llvm::Value* base = pointer(region);
      if (base == nullptr) continue;
      bool same = false;
      llvm::Value* at = offset(region, last, same);
      emitter.lanes().store(typeOf(region).kind(), values.at(region), base, at);
    }
  }

  const EmitContext& context_;
  const cpu::KernelPlan& plan_;
  std::span<const Instr> body_;
  llvm::IRBuilder<> b;
  std::vector<RegionId> addresses_;
  std::vector<llvm::Value*> pointers_;  // in the epilogue
  llvm::Function* epilogue_ = nullptr;
};

}  // namespace

Steps emitKernel(const EmitContext& context, const cpu::KernelPlan& plan, std::span<const Instr> body,
                 std::span<const Operand> operands, const std::string& name, bool shared) {
  return KernelEmitter(context, plan, body, operands).run(name, shared);
}

}  // namespace aglow::codegen
