// Formulas of elementwise operators as instructions on lanes.
#include <cmath>

#include "backends/cpu/llvm/lanes.h"
#include "support/error.h"

namespace aglow::codegen {

namespace {

double attributeValue(const Attrs& attrs, std::string_view name) {
  const AttrValue& value = attrs.at(attrs.indexOf(name));
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

// A literal that is no NaN. Then one comparison decides, and NaN of the other side still wins.
bool isOrdinary(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant == nullptr) return false;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* real = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return real != nullptr && !real->isNaN();
}

}  // namespace

llvm::Value* LaneBuilder::extremum(llvm::Value* x, llvm::Value* y, LaneDomain domain, bool least) {
  if (!domain.real()) {
    const auto id = domain.isSigned ? (least ? llvm::Intrinsic::smin : llvm::Intrinsic::smax)
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
llvm::Value* LaneBuilder::divide(llvm::Value* x, llvm::Value* y, LaneDomain domain, bool remainder) {
  if (domain.real()) return remainder ? math("rem", {x, y}, domain) : b.CreateFDiv(x, y);
  llvm::Value* zero = constant(domain, 0);
  llvm::Value* none = b.CreateICmpEQ(y, zero);
  if (!domain.isSigned) {
    llvm::Value* divisor = b.CreateSelect(none, constant(domain, 1), y);
    return b.CreateSelect(none, zero, remainder ? b.CreateURem(x, divisor) : b.CreateUDiv(x, divisor));
  }
  llvm::Value* minusOne = b.CreateICmpEQ(y, constant(domain, -1));
  llvm::Value* divisor = b.CreateSelect(b.CreateOr(none, minusOne), constant(domain, 1), y);
  llvm::Value* plain = remainder ? b.CreateSRem(x, divisor) : b.CreateSDiv(x, divisor);
  llvm::Value* byMinusOne = remainder ? zero : b.CreateNeg(x);
  return b.CreateSelect(none, zero, b.CreateSelect(minusOne, byMinusOne, plain));
}

// A shift by the width or more gives zero.
llvm::Value* LaneBuilder::shift(llvm::Value* x, llvm::Value* by, int bits, bool left) {
  llvm::Type* type = x->getType();
  llvm::Value* inside = b.CreateICmpULT(by, llvm::ConstantInt::get(type, static_cast<uint64_t>(bits)));
  llvm::Value* safe = b.CreateSelect(inside, by, llvm::Constant::getNullValue(type));
  llvm::Value* shifted = left ? b.CreateShl(x, safe) : b.CreateLShr(x, safe);
  return b.CreateSelect(inside, shifted, llvm::Constant::getNullValue(type));
}

LaneValue LaneBuilder::term(const Term& t, LaneDomain domain, llvm::ArrayRef<LaneValue> values, int bits) {
  const auto at = [&](uint8_t i) { return number(values[i], domain); };
  const auto unary = [&](llvm::Intrinsic::ID id) { return LaneValue{b.CreateUnaryIntrinsic(id, at(t.a))}; };
  const auto function = [&](const char* name) { return LaneValue{math(name, {at(t.a)}, domain)}; };
  const auto logic = [&](llvm::Instruction::BinaryOps op) -> LaneValue {
    if (domain.real() || (values[t.a].mask && values[t.b].mask))
      return {b.CreateBinOp(op, mask(values[t.a], domain), mask(values[t.b], domain)), true};
    return {b.CreateBinOp(op, at(t.a), at(t.b))};
  };
  const bool real = domain.real();
  switch (t.op) {
    case Scalar::Arg:
    case Scalar::Attr:
    case Scalar::Const:
      break;
    case Scalar::Add:
      return {real ? b.CreateFAdd(at(t.a), at(t.b)) : b.CreateAdd(at(t.a), at(t.b))};
    case Scalar::Sub:
      return {real ? b.CreateFSub(at(t.a), at(t.b)) : b.CreateSub(at(t.a), at(t.b))};
    case Scalar::Mul:
      return {real ? b.CreateFMul(at(t.a), at(t.b)) : b.CreateMul(at(t.a), at(t.b))};
    case Scalar::Div:
      return {divide(at(t.a), at(t.b), domain, false)};
    case Scalar::Rem:
      return {divide(at(t.a), at(t.b), domain, true)};
    case Scalar::Pow: {
      if (real) return {math("pow", {at(t.a), at(t.b)}, domain)};
      const LaneDomain wide = {LaneDomain::Type::I64, domain.isSigned};
      const char* name = domain.isSigned ? "pow_i64_w1" : "pow_u64_w1";
      llvm::Value* power =
          eachLane(name, {convert(at(t.a), domain, wide), convert(at(t.b), domain, wide)}, b.getInt64Ty());
      return {convert(power, wide, domain)};
    }
    case Scalar::Min:
      return {smaller(at(t.a), at(t.b), domain)};
    case Scalar::Max:
      return {larger(at(t.a), at(t.b), domain)};
    case Scalar::Neg:
      return {real ? b.CreateFNeg(at(t.a)) : b.CreateNeg(at(t.a))};
    case Scalar::Abs:
      if (real) return unary(llvm::Intrinsic::fabs);
      if (!domain.isSigned) return values[t.a];
      return {b.CreateIntrinsic(llvm::Intrinsic::abs, {at(t.a)->getType()}, {at(t.a), b.getFalse()})};
    case Scalar::Floor:
      return real ? unary(llvm::Intrinsic::floor) : values[t.a];
    case Scalar::Round:
      return real ? unary(llvm::Intrinsic::roundeven) : values[t.a];
    case Scalar::Sqrt:
      return unary(llvm::Intrinsic::sqrt);
    case Scalar::Exp:
      return function("exp");
    case Scalar::Expm1:
      return function("expm1");
    case Scalar::Log:
      return function("log");
    case Scalar::Log1p:
      return function("log1p");
    case Scalar::Sin:
      return function("sin");
    case Scalar::Cos:
      return function("cos");
    case Scalar::Atan:
      return function("atan");
    case Scalar::Tanh:
      return function("tanh");
    case Scalar::Erf:
      return function("erf");
    case Scalar::And:
      return logic(llvm::Instruction::And);
    case Scalar::Or:
      return logic(llvm::Instruction::Or);
    case Scalar::Xor:
      return logic(llvm::Instruction::Xor);
    case Scalar::Not:
      return {b.CreateNot(at(t.a))};
    case Scalar::Shl:
      return {shift(at(t.a), at(t.b), bits, true)};
    case Scalar::Shr:
      return {shift(at(t.a), at(t.b), bits, false)};
    case Scalar::Eq:
      if (values[t.a].mask && values[t.b].mask) return {b.CreateICmpEQ(values[t.a].value, values[t.b].value), true};
      return {real ? b.CreateFCmpOEQ(at(t.a), at(t.b)) : b.CreateICmpEQ(at(t.a), at(t.b)), true};
    case Scalar::Lt:
      if (real) return {b.CreateFCmpOLT(at(t.a), at(t.b)), true};
      return {domain.isSigned ? b.CreateICmpSLT(at(t.a), at(t.b)) : b.CreateICmpULT(at(t.a), at(t.b)), true};
    case Scalar::IsNan:
      return {b.CreateFCmpUNO(at(t.a), at(t.a)), true};
    case Scalar::Select:
      return {b.CreateSelect(mask(values[t.a], domain), at(t.b), at(t.c))};
  }
  AGLOW_CHECK(false, "a formula's term is no operation");
}

LaneValue LaneBuilder::evaluate(const Attrs& attrs, LaneDomain domain, llvm::ArrayRef<LaneValue> operands) {
  const Formula& formula = attrs.op().scalar;
  const int bits = domain.type == LaneDomain::Type::I64 ? 64 : 32;
  std::vector<LaneValue> values;
  for (const Term& t : formula) {
    if (t.op == Scalar::Arg)
      values.push_back(operands[t.a]);
    else if (t.op == Scalar::Attr)
      values.push_back({constant(domain, attributeValue(attrs, t.attr))});
    else if (t.op == Scalar::Const)
      values.push_back({constant(domain, t.value)});
    else
      values.push_back(term(t, domain, values, bits));
  }
  return values.back();
}

}  // namespace aglow::codegen
