// Stored elements, domains and the conversions between them.
#include "backends/cpu/llvm/lanes.h"

#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <cmath>

namespace aglow::codegen {

namespace {

using Type = LaneDomain::Type;

// The library's name for a kind that LLVM has no portable conversions of.
std::string narrowName(ElemKind kind) { return std::string(elemName(kind)); }

bool isNarrowFloat(ElemKind kind) { return isFloat(kind) && kind != ElemKind::Float32 && kind != ElemKind::Float64; }

}  // namespace

LaneDomain domainOfKind(ElemKind kind) {
  const ElemInfo& info = elemInfo(kind);
  if (info.cls == ElemClass::Float) return {kind == ElemKind::Float64 ? Type::F64 : Type::F32, false};
  const bool isSigned = info.cls == ElemClass::Signed || (info.cls == ElemClass::Quantized && kind != ElemKind::QUInt8);
  return {info.bytes == 8 ? Type::I64 : Type::I32, isSigned};
}

LaneDomain commonDomain(llvm::ArrayRef<ElemKind> kinds) {
  bool real = false, wideReal = false, isSigned = false, wide = false, mixed = false;
  for (const ElemKind kind : kinds) {
    const LaneDomain domain = domainOfKind(kind);
    real |= domain.real();
    wideReal |= domain.type == Type::F64;
    isSigned |= domain.isSigned;
    wide |= domain.type == Type::I64;
    // 32 bits of an integer do not fit into an f32.
    mixed |= !domain.real() && elemBytes(kind) >= 4;
  }
  if (real) return {wideReal || mixed ? Type::F64 : Type::F32, false};
  return {wide ? Type::I64 : Type::I32, isSigned};
}

llvm::Type* LaneBuilder::scalarType(LaneDomain domain) const {
  switch (domain.type) {
    case Type::F32:
      return b.getFloatTy();
    case Type::F64:
      return b.getDoubleTy();
    case Type::I32:
      return b.getInt32Ty();
    case Type::I64:
      break;
  }
  return b.getInt64Ty();
}

llvm::Type* LaneBuilder::storedScalar(ElemKind kind) const {
  if (kind == ElemKind::Float32) return b.getFloatTy();
  if (kind == ElemKind::Float64) return b.getDoubleTy();
  return b.getIntNTy(static_cast<unsigned>(8 * elemBytes(kind)));
}

llvm::Type* LaneBuilder::lanes(llvm::Type* scalar) const {
  return width_ == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(width_));
}

llvm::Value* LaneBuilder::splat(llvm::Value* scalar) const {
  return width_ == 1 ? scalar : b.CreateVectorSplat(static_cast<unsigned>(width_), scalar);
}

llvm::Value* LaneBuilder::load(ElemKind kind, llvm::Value* base, llvm::Value* index, bool same) {
  llvm::Type* scalar = storedScalar(kind);
  llvm::Value* address = b.CreateInBoundsGEP(scalar, base, index);
  const llvm::Align align(static_cast<uint64_t>(elemBytes(kind)));
  if (same) return splat(b.CreateAlignedLoad(scalar, address, align));
  return b.CreateAlignedLoad(lanes(scalar), address, align);
}

void LaneBuilder::store(ElemKind kind, llvm::Value* stored, llvm::Value* base, llvm::Value* index) {
  llvm::Value* address = b.CreateInBoundsGEP(storedScalar(kind), base, index);
  b.CreateAlignedStore(stored, address, llvm::Align(static_cast<uint64_t>(elemBytes(kind))));
}

llvm::Value* LaneBuilder::constant(LaneDomain domain, double value) const {
  if (domain.real()) return llvm::ConstantFP::get(domainType(domain), value);
  // Negative literals wrap; what no integer can hold saturates, as the reference reads it.
  uint64_t bits = 0;
  if (value < 0)
    bits = value <= -0x1p63 ? uint64_t{1} << 63 : static_cast<uint64_t>(static_cast<int64_t>(value));
  else if (value >= (domain.isSigned ? 0x1p63 : 0x1p64))
    bits = domain.isSigned ? ~uint64_t{0} >> 1 : ~uint64_t{0};
  else
    bits = static_cast<uint64_t>(value);
  if (domain.type == Type::I32) bits = static_cast<uint32_t>(bits);
  return llvm::ConstantInt::get(domainType(domain), bits);
}

llvm::Value* LaneBuilder::number(LaneValue value, LaneDomain domain) {
  if (!value.mask) return value.value;
  if (domain.real()) return b.CreateUIToFP(value.value, domainType(domain));
  return b.CreateZExt(value.value, domainType(domain));
}

llvm::Value* LaneBuilder::mask(LaneValue value, LaneDomain domain) {
  if (value.mask) return value.value;
  llvm::Value* zero = constant(domain, 0);
  return domain.real() ? b.CreateFCmpUNE(value.value, zero) : b.CreateICmpNE(value.value, zero);
}

// Towards zero; what does not fit saturates and NaN is 0.
llvm::Value* LaneBuilder::realToInteger(llvm::Value* value, llvm::Type* scalar, bool isSigned) {
  if (width_ > 1 && llvm::Triple(target_.triple()).isX86()) return heldToInteger(value, scalar, isSigned);
  const auto id = isSigned ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return b.CreateIntrinsic(id, {lanes(scalar), value->getType()}, {value});
}

// The same for x86, where LLVM takes such conversions apart into single lanes: the value is first held between the ends
// of the range, as far as the float kind can tell them.
llvm::Value* LaneBuilder::heldToInteger(llvm::Value* value, llvm::Type* scalar, bool isSigned) {
  const auto bits = static_cast<int>(scalar->getIntegerBitWidth());
  llvm::Type *real = value->getType(), *integer = lanes(scalar);
  const double limit = std::ldexp(1.0, isSigned ? bits - 1 : bits), lowest = isSigned ? -limit : 0;
  const double highest = real->getScalarType()->isFloatTy()
                             ? static_cast<double>(std::nextafterf(static_cast<float>(limit), 0))
                             : std::nextafter(limit, 0.0);
  const auto number = [&](double x) { return llvm::ConstantFP::get(real, x); };
  llvm::Value* held = b.CreateSelect(b.CreateFCmpOGT(value, number(lowest)), value, number(lowest));
  held = b.CreateSelect(b.CreateFCmpOLT(held, number(highest)), held, number(highest));
  llvm::Value* result = isSigned ? b.CreateFPToSI(held, integer) : b.CreateFPToUI(held, integer);
  // The lowest value is a number of both kinds, the highest may not be.
  if (std::trunc(highest) != limit - 1) {
    llvm::Constant* most =
        llvm::ConstantInt::get(integer, isSigned ? ~uint64_t{0} >> (65 - bits) : ~uint64_t{0} >> (64 - bits));
    result = b.CreateSelect(b.CreateFCmpOGE(value, number(limit)), most, result);
  }
  if (!isSigned) return result;
  return b.CreateSelect(b.CreateFCmpORD(value, value), result, llvm::Constant::getNullValue(integer));
}

llvm::Value* LaneBuilder::convert(llvm::Value* value, LaneDomain from, LaneDomain to) {
  llvm::Type* type = domainType(to);
  if (from.type == to.type) return value;
  if (from.real() && to.real()) return b.CreateFPCast(value, type);
  if (from.real()) return realToInteger(value, scalarType(to), to.isSigned);
  if (to.real()) return from.isSigned ? b.CreateSIToFP(value, type) : b.CreateUIToFP(value, type);
  return b.CreateIntCast(value, type, from.isSigned);
}

LaneValue LaneBuilder::widen(ElemKind kind, llvm::Value* stored, LaneDomain domain) {
  if (kind == ElemKind::Bool) return {b.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType())), true};
  const LaneDomain own = domainOfKind(kind);
  if (isNarrowFloat(kind)) {
    const llvm::Triple triple(target_.triple());
    if (kind == ElemKind::Float16 && (triple.isAArch64() || (triple.isX86() && target_.has("f16c")))) {
      llvm::Value* half = b.CreateBitCast(stored, lanes(b.getHalfTy()));
      stored = b.CreateFPExt(half, domainType(own));
    } else {
      stored = library_.call(b, "widen_" + narrowName(kind) + "_w" + std::to_string(width_), {stored}, domainType(own));
    }
  } else if (!own.real()) {
    stored = b.CreateIntCast(stored, domainType(own), own.isSigned);
  }
  return {convert(stored, own, domain), false};
}

llvm::Value* LaneBuilder::narrowReal(ElemKind kind, llvm::Value* value, LaneDomain domain, Narrowing narrowing) {
  llvm::Type* stored = storedType(kind);
  if (kind == ElemKind::Float32 || kind == ElemKind::Float64) return convert(value, domain, domainOfKind(kind));
  std::vector<llvm::Value*> arguments = {value};
  const bool isHalf = kind == ElemKind::Float16 || kind == ElemKind::BFloat16;
  if (!isHalf) {
    arguments.push_back(b.getInt1(narrowing.saturate));
    arguments.push_back(b.getInt32(static_cast<uint32_t>(narrowing.rounding)));
  }
  // Through f32 a double would be rounded twice.
  if (domain.type == Type::F64)
    return eachLane("narrow_" + narrowName(kind) + "_f64_w1", arguments, storedScalar(kind));
  const llvm::Triple triple(target_.triple());
  if (kind == ElemKind::Float16 && (triple.isAArch64() || (triple.isX86() && target_.has("f16c"))))
    return b.CreateBitCast(b.CreateFPTrunc(value, lanes(b.getHalfTy())), stored);
  return library_.call(b, "narrow_" + narrowName(kind) + "_w" + std::to_string(width_), arguments, stored);
}

llvm::Value* LaneBuilder::narrow(ElemKind kind, LaneValue lane, LaneDomain domain, Narrowing narrowing) {
  llvm::Type* stored = storedType(kind);
  if (kind == ElemKind::Bool) return b.CreateZExt(mask(lane, domain), stored);
  llvm::Value* value = number(lane, domain);
  if (isFloat(kind)) {
    if (domain.real()) return narrowReal(kind, value, domain, narrowing);
    // Integers beyond 24 bits would be rounded twice on their way to narrower floats.
    const LaneDomain real = {isNarrowFloat(kind) ? Type::F64 : domainOfKind(kind).type, false};
    const LaneDomain via = domain.type == Type::I64 || !isNarrowFloat(kind) ? real : LaneDomain{Type::F32, false};
    return narrowReal(kind, convert(value, domain, via), via, narrowing);
  }
  const ElemInfo& info = elemInfo(kind);
  const bool isSigned = domainOfKind(kind).isSigned;
  if (domain.real()) {
    // Kinds of less than 32 bits wrap, from the 32-bit value.
    const bool whole = info.bytes >= 4;
    value = realToInteger(value, whole ? storedScalar(kind) : b.getInt32Ty(), whole ? isSigned : true);
  }
  value = b.CreateIntCast(value, stored, domain.isSigned || domain.real());
  if (info.bits == 8 * info.bytes) return value;
  llvm::Value* unused = llvm::ConstantInt::get(stored, static_cast<uint64_t>(8 * info.bytes - info.bits));
  value = b.CreateShl(value, unused);
  return isSigned ? b.CreateAShr(value, unused) : b.CreateLShr(value, unused);
}

llvm::Value* LaneBuilder::eachLane(const std::string& name, llvm::ArrayRef<llvm::Value*> arguments,
                                   llvm::Type* scalarResult) {
  if (width_ == 1) return library_.call(b, name, arguments, scalarResult);
  llvm::Value* result = llvm::PoisonValue::get(lanes(scalarResult));
  for (int i = 0; i < width_; ++i) {
    std::vector<llvm::Value*> scalars;
    for (llvm::Value* argument : arguments)
      scalars.push_back(argument->getType()->isVectorTy() ? b.CreateExtractElement(argument, static_cast<uint64_t>(i))
                                                          : argument);
    result = b.CreateInsertElement(result, library_.call(b, name, scalars, scalarResult), static_cast<uint64_t>(i));
  }
  return result;
}

llvm::Value* LaneBuilder::math(const char* name, llvm::ArrayRef<llvm::Value*> arguments, LaneDomain domain) {
  const char* type = domain.type == Type::F64 ? "_f64_w" : "_f32_w";
  return library_.call(b, name + (type + std::to_string(width_)), arguments, domainType(domain));
}

}  // namespace aglow::codegen
