// The primitives of formulas on lanes.
#include "backends/cpu/llvm/lanes.h"
#include "codegen/nest/scalars.h"
#include "support/check.h"

namespace aglow::codegen {

namespace {

// A literal that is not NaN. Then one comparison decides, and NaN of the other side still wins.
bool isOrdinary(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant == nullptr) return false;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* real = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return real != nullptr && !real->isNaN();
}

}  // namespace

llvm::Value* LaneBuilder::extremum(llvm::Value* x, llvm::Value* y, ElemKind kind, bool least) {
  if (!isFloat(kind)) {
    const auto id = isSigned(kind) ? (least ? llvm::Intrinsic::smin : llvm::Intrinsic::smax)
                                   : (least ? llvm::Intrinsic::umin : llvm::Intrinsic::umax);
    return b.CreateBinaryIntrinsic(id, x, y);
  }
  if (isOrdinary(x)) std::swap(x, y);
  // x86's instructions give the second operand where one is NaN: written so that this is right, one of them is enough.
  llvm::Value* better = least ? b.CreateFCmpOLT(y, x) : b.CreateFCmpOGT(y, x);
  llvm::Value* chosen = b.CreateSelect(better, y, x);
  if (isOrdinary(y)) return chosen;
  return b.CreateSelect(b.CreateFCmpUNO(y, y), y, chosen);
}

// Integers: a divisor of zero gives zero, and the lowest value by minus one wraps, where hardware traps.
llvm::Value* LaneBuilder::divide(llvm::Value* x, llvm::Value* y, ElemKind kind, bool remainder) {
  if (isFloat(kind)) return remainder ? math("rem", {x, y}, kind) : b.CreateFDiv(x, y);
  llvm::Value* zero = number(kind, 0);
  llvm::Value* none = b.CreateICmpEQ(y, zero);
  if (!isSigned(kind)) {
    llvm::Value* divisor = b.CreateSelect(none, number(kind, 1), y);
    return b.CreateSelect(none, zero, remainder ? b.CreateURem(x, divisor) : b.CreateUDiv(x, divisor));
  }
  llvm::Value* minusOne = b.CreateICmpEQ(y, number(kind, ~uint64_t{0}));
  llvm::Value* divisor = b.CreateSelect(b.CreateOr(none, minusOne), number(kind, 1), y);
  llvm::Value* plain = remainder ? b.CreateSRem(x, divisor) : b.CreateSDiv(x, divisor);
  llvm::Value* byMinusOne = remainder ? zero : b.CreateNeg(x);
  return b.CreateSelect(none, zero, b.CreateSelect(minusOne, byMinusOne, plain));
}

// A shift by the width or more gives zero.
llvm::Value* LaneBuilder::shift(llvm::Value* x, llvm::Value* by, bool left) {
  llvm::Type* type = x->getType();
  llvm::Value* inside = b.CreateICmpULT(by, llvm::ConstantInt::get(type, type->getScalarSizeInBits()));
  llvm::Value* safe = b.CreateSelect(inside, by, llvm::Constant::getNullValue(type));
  llvm::Value* shifted = left ? b.CreateShl(x, safe) : b.CreateLShr(x, safe);
  return b.CreateSelect(inside, shifted, llvm::Constant::getNullValue(type));
}

llvm::Value* LaneBuilder::apply(Scalar op, ElemKind kind, llvm::Value* a, llvm::Value* y, llvm::Value* z) {
  const auto unary = [&](llvm::Intrinsic::ID id) { return b.CreateUnaryIntrinsic(id, a); };
  const bool real = isFloat(kind);
  switch (op) {
    case Scalar::Arg:
    case Scalar::Attr:
    case Scalar::Const:
      break;
    case Scalar::Add:
      return real ? b.CreateFAdd(a, y) : b.CreateAdd(a, y);
    case Scalar::Sub:
      return real ? b.CreateFSub(a, y) : b.CreateSub(a, y);
    case Scalar::Mul:
      return real ? b.CreateFMul(a, y) : b.CreateMul(a, y);
    case Scalar::Div:
      return divide(a, y, kind, false);
    case Scalar::Rem:
      return divide(a, y, kind, true);
    case Scalar::Pow:
      if (real) return math("pow", {a, y}, kind);
      return eachLane(isSigned(kind) ? "pow_i64_w1" : "pow_u64_w1", {a, y}, b.getInt64Ty());
    case Scalar::Min:
      return extremum(a, y, kind, true);
    case Scalar::Max:
      return extremum(a, y, kind, false);
    case Scalar::Neg:
      return real ? b.CreateFNeg(a) : b.CreateNeg(a);
    case Scalar::Abs:
      if (real) return unary(llvm::Intrinsic::fabs);
      return b.CreateIntrinsic(llvm::Intrinsic::abs, {a->getType()}, {a, b.getFalse()});
    case Scalar::Floor:
      return unary(llvm::Intrinsic::floor);
    case Scalar::Round:
      return unary(llvm::Intrinsic::roundeven);
    case Scalar::Sqrt:
      return unary(llvm::Intrinsic::sqrt);
    case Scalar::Exp:
    case Scalar::Expm1:
    case Scalar::Log:
    case Scalar::Log1p:
    case Scalar::Sin:
    case Scalar::Cos:
    case Scalar::Atan:
    case Scalar::Tanh:
    case Scalar::Erf:
      return math(nest::scalarInfo(op).name, {a}, kind);
    case Scalar::And:
      return b.CreateAnd(a, y);
    case Scalar::Or:
      return b.CreateOr(a, y);
    case Scalar::Xor:
      return b.CreateXor(a, y);
    case Scalar::Not:
      return b.CreateNot(a);
    case Scalar::Shl:
      return shift(a, y, true);
    case Scalar::Shr:
      return shift(a, y, false);
    case Scalar::Eq:
      return real ? b.CreateFCmpOEQ(a, y) : b.CreateICmpEQ(a, y);
    case Scalar::Lt:
      if (real) return b.CreateFCmpOLT(a, y);
      return isSigned(kind) ? b.CreateICmpSLT(a, y) : b.CreateICmpULT(a, y);
    case Scalar::IsNan:
      return b.CreateFCmpUNO(a, a);
    case Scalar::Select:
      return b.CreateSelect(a, y, z);
  }
  AGLOW_CHECK(false, "a value of a nest applies no operation");
}

}  // namespace aglow::codegen
