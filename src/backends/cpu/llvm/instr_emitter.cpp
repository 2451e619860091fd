// Data-parallel instructions on lanes: formulas, conversions between kinds, quantization.
#include "backends/cpu/llvm/steps.h"
#include "reference/arithmetic.h"

namespace aglow::codegen {

namespace {

constexpr LaneDomain kF32{LaneDomain::Type::F32, false}, kF64{LaneDomain::Type::F64, false};

std::vector<float> asFloats(const std::vector<int32_t>& values) { return {values.begin(), values.end()}; }

}  // namespace

// The quotient is rounded as the reference rounds it: to f32, or f64 for f64. What follows is exact in the domain.
llvm::Value* InstrEmitter::quantize(const Type& from, const Type& to, llvm::Value* stored, llvm::Value* scale,
                                    llvm::Value* offset) {
  const bool wide = from.kind() == ElemKind::Float64;
  const LaneDomain quotients = wide ? kF64 : kF32;
  const LaneDomain exact = wide || elemBytes(to.kind()) >= 4 ? kF64 : kF32;
  llvm::Value* x = lanes_.widen(from.kind(), stored, quotients).value;
  llvm::Value* quotient = b.CreateFDiv(x, b.CreateFPCast(scale, x->getType()));
  quotient = b.CreateFPCast(quotient, lanes_.domainType(exact));
  llvm::Value* shift = b.CreateFPCast(offset, quotient->getType());
  llvm::Value* sum = b.CreateFAdd(b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, quotient), shift);
  llvm::Value* low = lanes_.constant(exact, static_cast<double>(lowestOf<int64_t>(to.kind())));
  llvm::Value* high = lanes_.constant(exact, static_cast<double>(highestOf<int64_t>(to.kind())));
  llvm::Value* held = lanes_.smaller(lanes_.larger(sum, low, exact), high, exact);
  held = b.CreateSelect(b.CreateFCmpUNO(quotient, quotient), shift, held);
  return lanes_.narrow(to.kind(), {held}, exact);
}

llvm::Value* InstrEmitter::dequantize(const Type& from, const Type& to, llvm::Value* stored, llvm::Value* scale,
                                      llvm::Value* offset) {
  const bool wide = to.kind() == ElemKind::Float64 || elemBytes(from.kind()) >= 4;
  const LaneDomain domain = wide ? kF64 : kF32;
  llvm::Value* x = lanes_.widen(from.kind(), stored, domain).value;
  llvm::Value* real =
      b.CreateFMul(b.CreateFSub(x, b.CreateFPCast(offset, x->getType())), b.CreateFPCast(scale, x->getType()));
  return lanes_.narrow(to.kind(), {real}, domain);
}

llvm::Value* InstrEmitter::emit(const Instr& instr, llvm::function_ref<llvm::Value*(int)> operand,
                                llvm::function_ref<llvm::Value*(const std::vector<float>&, const Type&)> perAxis) {
  const Program& program = context_.program;
  const Type& result = program[instr.results()[0].region].type;
  const auto typeOf = [&](int i) -> const Type& { return program[instr.inputs()[static_cast<size_t>(i)].region].type; };
  const std::string_view name = instr.attrs.op().name;
  const auto parameter = [&](const std::vector<float>& values, const Type& quantized) {
    if (quantized.quant().axis < 0) return lanes_.constant(kF32, static_cast<double>(values.front()));
    return perAxis(values, quantized);
  };

  if (name == "Splat") return lanes_.narrow(result.kind(), {lanes_.constant(kF64, instr.attrs.real("value"))}, kF64);
  if (name == "Cast") {
    const ElemKind from = typeOf(0).kind();
    const LaneDomain domain = domainOfKind(from);
    const std::string& rounding = instr.attrs.word("rounding");
    const Narrowing narrowing{instr.attrs.flag("saturate"), rounding == "up" ? 1 : rounding == "down" ? 2 : 0};
    return lanes_.narrow(result.kind(), lanes_.widen(from, operand(0), domain), domain, narrowing);
  }
  if (name == "Quantize")
    return quantize(typeOf(0), result, operand(0), parameter(result.quant().scales, result),
                    parameter(asFloats(result.quant().offsets), result));
  if (name == "Dequantize")
    return dequantize(typeOf(0), result, operand(0), parameter(typeOf(0).quant().scales, typeOf(0)),
                      parameter(asFloats(typeOf(0).quant().offsets), typeOf(0)));

  std::vector<ElemKind> kinds;
  for (const Operand& input : instr.inputs()) kinds.push_back(program[input.region].type.kind());
  const LaneDomain domain = commonDomain(kinds);
  std::vector<LaneValue> values;
  for (size_t i = 0; i < kinds.size(); ++i)
    values.push_back(lanes_.widen(kinds[i], operand(static_cast<int>(i)), domain));
  // What is only moved keeps its bits, signalling NaNs included.
  if (instr.attrs.op().scalar.size() == 1 && result.kind() == kinds[0]) return operand(0);
  return lanes_.narrow(result.kind(), lanes_.evaluate(instr.attrs, domain, values), domain);
}

}  // namespace aglow::codegen
