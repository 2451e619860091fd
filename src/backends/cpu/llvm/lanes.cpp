// Elements in memory and in registers, and the conversions between kinds.
#include "backends/cpu/llvm/lanes.h"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/TargetParser/Triple.h>

#include <cmath>
#include <optional>

namespace aglow::codegen {

namespace {

using enum ElemKind;
using nest::isReal;

// One end of a range that values are held in, as extremum() does it: NaN stays NaN.
struct Bound {
  llvm::SelectInst* choice = nullptr;
  llvm::CmpInst::Predicate side = llvm::CmpInst::BAD_FCMP_PREDICATE;
  double end = 0;
};

std::optional<Bound> boundOf(llvm::Value* value) {
  auto* choice = llvm::dyn_cast<llvm::SelectInst>(value);
  if (choice == nullptr) return {};
  const auto* test = llvm::dyn_cast<llvm::FCmpInst>(choice->getCondition());
  const auto* bound = llvm::dyn_cast<llvm::Constant>(choice->getTrueValue());
  if (bound != nullptr && bound->getType()->isVectorTy()) bound = bound->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(bound);
  if (test == nullptr || number == nullptr || test->getOperand(0) != choice->getTrueValue() ||
      test->getOperand(1) != choice->getFalseValue())
    return {};
  const double end = number->getType()->isFloatTy() ? static_cast<double>(number->getValueAPF().convertToFloat())
                                                    : number->getValueAPF().convertToDouble();
  return Bound{choice, test->getPredicate(), end};
}

// Whether a value has been held between two numbers of [lowest, highest].
bool isHeld(llvm::Value* value, double lowest, double highest) {
  bool above = false, below = false;
  for (std::optional<Bound> bound = boundOf(value); bound; bound = boundOf(bound->choice->getFalseValue())) {
    if (!(bound->end >= lowest && bound->end <= highest)) return false;
    above = above || bound->side == llvm::CmpInst::FCMP_OGT;
    below = below || bound->side == llvm::CmpInst::FCMP_OLT;
    if (above && below) return true;
  }
  return false;
}

// What heldToWords() gives, without its test: x86 makes a NaN the lowest number, whose lower half is 0 as well.
llvm::Value* untested(llvm::Value* words) {
  auto* choice = llvm::dyn_cast<llvm::SelectInst>(words);
  const auto* test = choice != nullptr ? llvm::dyn_cast<llvm::FCmpInst>(choice->getCondition()) : nullptr;
  const auto* call = choice != nullptr ? llvm::dyn_cast<llvm::IntrinsicInst>(choice->getTrueValue()) : nullptr;
  const bool found = test != nullptr && call != nullptr && test->getPredicate() == llvm::CmpInst::FCMP_ORD &&
                     test->getOperand(0) == call->getArgOperand(0) && test->getOperand(1) == call->getArgOperand(0) &&
                     call->getCalledFunction()->getName().starts_with("llvm.x86");
  return found ? choice->getTrueValue() : words;
}

// A value that is first rounded, then held between whole numbers, without the rounding; null if it is not.
llvm::Value* unrounded(llvm::IRBuilder<>& b, llvm::Value* value) {
  if (const std::optional<Bound> bound = boundOf(value)) {
    llvm::Value* x = bound->end == std::trunc(bound->end) ? unrounded(b, bound->choice->getFalseValue()) : nullptr;
    if (x == nullptr) return nullptr;
    llvm::Value* end = bound->choice->getTrueValue();
    return b.CreateSelect(b.CreateFCmp(bound->side, end, x), end, x);
  }
  const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value);
  return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::roundeven ? call->getArgOperand(0) : nullptr;
}

}  // namespace

llvm::Type* LaneBuilder::storedScalar(ElemKind kind) const {
  if (kind == Float32) return b.getFloatTy();
  if (kind == Float64) return b.getDoubleTy();
  return b.getIntNTy(static_cast<unsigned>(8 * elemBytes(kind)));
}

llvm::Type* LaneBuilder::scalarType(ElemKind kind) const { return kind == Bool ? b.getInt1Ty() : storedScalar(kind); }

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
  llvm::Value* stored =
      same ? splat(b.CreateAlignedLoad(scalar, address, align)) : b.CreateAlignedLoad(lanes(scalar), address, align);
  return kind == Bool ? b.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType())) : stored;
}

void LaneBuilder::store(ElemKind kind, llvm::Value* value, llvm::Value* base, llvm::Value* index) {
  llvm::Value* address = b.CreateInBoundsGEP(storedScalar(kind), base, index);
  if (kind == Bool) value = b.CreateZExt(value, lanes(storedScalar(kind)));
  b.CreateAlignedStore(value, address, llvm::Align(static_cast<uint64_t>(elemBytes(kind))));
}

llvm::Value* LaneBuilder::number(ElemKind kind, uint64_t bits) const {
  if (isReal(kind)) return llvm::ConstantFP::get(type(kind), std::bit_cast<double>(bits));
  const unsigned width = scalarType(kind)->getIntegerBitWidth();
  return llvm::ConstantInt::get(type(kind), width == 64 ? bits : bits & ((uint64_t{1} << width) - 1));
}

// Towards zero; what does not fit saturates and NaN is 0.
llvm::Value* LaneBuilder::realToInteger(llvm::Value* value, ElemKind to) {
  if (width_ > 1 && llvm::Triple(target_.triple()).isX86()) return heldToInteger(value, to);
  const auto id = isSigned(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return b.CreateIntrinsic(id, {type(to), value->getType()}, {value});
}

// The same for x86, where LLVM takes such conversions apart into single lanes: the value is first held between the ends
// of the range, as far as the float kind can tell them.
llvm::Value* LaneBuilder::heldToInteger(llvm::Value* value, ElemKind to) {
  const int bits = elemInfo(to).bits;
  llvm::Type *real = value->getType(), *integer = type(to);
  const double limit = std::ldexp(1.0, isSigned(to) ? bits - 1 : bits), lowest = isSigned(to) ? -limit : 0;
  const double highest = real->getScalarType()->isFloatTy()
                             ? static_cast<double>(std::nextafterf(static_cast<float>(limit), 0))
                             : std::nextafter(limit, 0.0);
  const auto end = [&](double x) { return llvm::ConstantFP::get(real, x); };
  if (isHeld(value, lowest, highest)) {
    if (llvm::Value* words = to == Int32 ? heldToWords(value) : nullptr) return words;
    llvm::Value* ordered = b.CreateSelect(b.CreateFCmpORD(value, value), value, end(0));
    return isSigned(to) ? b.CreateFPToSI(ordered, integer) : b.CreateFPToUI(ordered, integer);
  }
  llvm::Value* held = b.CreateSelect(b.CreateFCmpOGT(value, end(lowest)), value, end(lowest));
  held = b.CreateSelect(b.CreateFCmpOLT(held, end(highest)), held, end(highest));
  llvm::Value* result = isSigned(to) ? b.CreateFPToSI(held, integer) : b.CreateFPToUI(held, integer);
  // The lowest value is a number of both kinds, the highest may not be.
  if (std::trunc(highest) != limit - 1) {
    llvm::Value* most = number(to, isSigned(to) ? ~uint64_t{0} >> (65 - bits) : ~uint64_t{0} >> (64 - bits));
    result = b.CreateSelect(b.CreateFCmpOGE(value, end(limit)), most, result);
  }
  if (!isSigned(to)) return result;
  return b.CreateSelect(b.CreateFCmpORD(value, value), result, llvm::Constant::getNullValue(integer));
}

// To i32 with the target's own instruction, which rounds as well, if that is asked for. Null where there is none.
llvm::Value* LaneBuilder::heldToWords(llvm::Value* value) {
  constexpr uint32_t kCurrentRounding = 4;
  using namespace llvm::Intrinsic;  // NOLINT: names of instructions
  if (!value->getType()->getScalarType()->isFloatTy()) return nullptr;
  llvm::Value* plain = unrounded(b, value);
  llvm::Value* x = plain != nullptr ? plain : value;
  llvm::Constant* none = llvm::Constant::getNullValue(lanes(b.getInt32Ty()));
  llvm::Value* converted = nullptr;
  if (width_ == 16 && target_.has("avx512f"))
    converted = b.CreateIntrinsic(plain != nullptr ? x86_avx512_mask_cvtps2dq_512 : x86_avx512_mask_cvttps2dq_512, {},
                                  {x, none, b.getInt16(UINT16_MAX), b.getInt32(kCurrentRounding)});
  else if (width_ == 8 && target_.has("avx"))
    converted = b.CreateIntrinsic(plain != nullptr ? x86_avx_cvt_ps2dq_256 : x86_avx_cvtt_ps2dq_256, {}, {x});
  else if (width_ == 4 && target_.has("sse2"))
    converted = b.CreateIntrinsic(plain != nullptr ? x86_sse2_cvtps2dq : x86_sse2_cvttps2dq, {}, {x});
  return converted != nullptr ? b.CreateSelect(b.CreateFCmpORD(x, x), converted, none) : nullptr;
}

// Whether the target converts between f16 and f32 itself.
bool LaneBuilder::hasHalves() const {
  const llvm::Triple triple(target_.triple());
  return triple.isAArch64() || (triple.isX86() && target_.has("f16c"));
}

llvm::Value* LaneBuilder::narrowed(llvm::Value* value, ElemKind from, ElemKind to, bool saturate,
                                   ScaleRounding rounding) {
  const std::string name = "narrow_" + std::string(elemName(to));
  std::vector<llvm::Value*> arguments = {value};
  if (to != Float16 && to != BFloat16) {
    arguments.push_back(b.getInt1(saturate));
    arguments.push_back(b.getInt32(static_cast<uint32_t>(rounding)));
  }
  // Through f32 a double would be rounded twice.
  if (from == Float64) return eachLane(name + "_f64_w1", arguments, storedScalar(to));
  if (to == Float16 && hasHalves()) return b.CreateBitCast(b.CreateFPTrunc(value, lanes(b.getHalfTy())), type(to));
  return library_.call(b, name + "_w" + std::to_string(width_), arguments, type(to));
}

llvm::Value* LaneBuilder::convert(llvm::Value* value, ElemKind from, ElemKind to, bool saturate,
                                  ScaleRounding rounding) {
  if (from == Bool) return isReal(to) ? b.CreateUIToFP(value, type(to)) : b.CreateZExt(value, type(to));
  if (to == Bool) {
    llvm::Value* zero = llvm::Constant::getNullValue(value->getType());
    return isReal(from) ? b.CreateFCmpUNE(value, zero) : b.CreateICmpNE(value, zero);
  }
  if (isReal(from)) {
    if (isReal(to)) return b.CreateFPCast(value, type(to));
    return isFloat(to) ? narrowed(value, from, to, saturate, rounding) : realToInteger(value, to);
  }
  if (isFloat(from)) {
    if (from == Float16 && hasHalves()) {
      // Comparisons of widened values stay those of f32: of f16 few processors have any, and lanes would come apart.
      llvm::Value* wide = b.CreateFPExt(b.CreateBitCast(value, lanes(b.getHalfTy())), type(to));
      return b.CreateArithmeticFence(wide, wide->getType());
    }
    return library_.call(b, "widen_" + std::string(elemName(from)) + "_w" + std::to_string(width_), {value}, type(to));
  }
  if (isReal(to)) return isSigned(from) ? b.CreateSIToFP(value, type(to)) : b.CreateUIToFP(value, type(to));
  if (from == Int32 && elemInfo(to).bits <= 16) value = untested(value);
  value = b.CreateIntCast(value, type(to), isSigned(from));
  const ElemInfo& info = elemInfo(to);
  if (info.bits == 8 * info.bytes) return value;
  llvm::Value* unused = llvm::ConstantInt::get(type(to), static_cast<uint64_t>(8 * info.bytes - info.bits));
  value = b.CreateShl(value, unused);
  return isSigned(to) ? b.CreateAShr(value, unused) : b.CreateLShr(value, unused);
}

llvm::Value* LaneBuilder::lookup(llvm::Value* table, llvm::Value* bytes) {
  const auto entry = [&](llvm::Value* byte) {
    llvm::Value* address = b.CreateInBoundsGEP(b.getInt8Ty(), table, b.CreateZExt(byte, b.getInt64Ty()));
    return b.CreateAlignedLoad(b.getInt8Ty(), address, llvm::Align(1));
  };
  if (width_ == 1) return entry(bytes);
  if (llvm::Triple(target_.triple()).isX86() && target_.has("avx512vbmi")) return permuted(table, bytes);
  llvm::Value* result = llvm::PoisonValue::get(bytes->getType());
  for (uint64_t i = 0; i < static_cast<uint64_t>(width_); ++i)
    result = b.CreateInsertElement(result, entry(b.CreateExtractElement(bytes, i)), i);
  return result;
}

// Both halves of the table by the lower seven bits, then the half that the highest bit says.
llvm::Value* LaneBuilder::permuted(llvm::Value* table, llvm::Value* bytes) {
  constexpr int kRegister = 64;
  llvm::Type* whole = llvm::FixedVectorType::get(b.getInt8Ty(), kRegister);
  std::vector<int> widened(kRegister, llvm::PoisonMaskElem), kept;
  for (int i = 0; i < width_; ++i) {
    widened[static_cast<size_t>(i)] = i;
    kept.push_back(i);
  }
  llvm::Value* index = b.CreateShuffleVector(bytes, widened);
  const auto quarter = [&](uint64_t i) {
    llvm::Value* address = b.CreateInBoundsGEP(b.getInt8Ty(), table, b.getInt64(i * kRegister));
    return b.CreateAlignedLoad(whole, address, llvm::Align(kRegister));
  };
  const auto half = [&](uint64_t first) {
    return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_qi_512, {},
                             {quarter(first), index, quarter(first + 1)});
  };
  llvm::Value* upper = b.CreateICmpSLT(index, llvm::Constant::getNullValue(whole));
  return b.CreateShuffleVector(b.CreateSelect(upper, half(2), half(0)), kept);
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

llvm::Value* LaneBuilder::math(std::string_view name, llvm::ArrayRef<llvm::Value*> arguments, ElemKind kind) {
  const char* suffix = kind == Float64 ? "_f64_w" : "_f32_w";
  return library_.call(b, std::string(name) + suffix + std::to_string(width_), arguments, type(kind));
}

}  // namespace aglow::codegen
