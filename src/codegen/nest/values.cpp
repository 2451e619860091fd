// Data-parallel instructions as expressions: formulas, conversions between kinds, quantization.
#include "codegen/nest/values.h"

#include <algorithm>

#include "codegen/nest/kinds.h"
#include "codegen/nest/scalars.h"
#include "reference/arithmetic.h"
#include "reference/scalars.h"
#include "support/check.h"

namespace aglow::nest {

namespace {

using enum ElemKind;

uint64_t integerBits(ElemKind kind, double value) {
  if (isSigned(kind)) {
    const auto bits = reference::literal<int64_t>(value);
    return static_cast<uint64_t>(elemBytes(kind) == 8 ? bits : static_cast<int32_t>(bits));
  }
  const auto bits = reference::literal<uint64_t>(value);
  return elemBytes(kind) == 8 ? bits : static_cast<uint32_t>(bits);
}

}  // namespace

void Values::open(Block& block) { block.begin = begin_ = static_cast<int>(nest_.values.size()); }

int Values::add(const Expr& value) {
  const auto from = nest_.values.begin() + begin_;
  const auto it = std::find(from, nest_.values.end(), value);
  if (it == nest_.values.end()) {
    nest_.values.push_back(value);
    return static_cast<int>(nest_.values.size()) - 1;
  }
  return static_cast<int>(it - nest_.values.begin());
}

int Values::load(int access) {
  return add({.op = Expr::Op::Load, .kind = nest_.accesses[static_cast<size_t>(access)].kind, .a = access});
}

int Values::number(ElemKind kind, double value) {
  AGLOW_CHECK(isComputed(kind), "a number of a kind that is only stored");
  if (kind == Float32) value = static_cast<double>(static_cast<float>(value));
  const uint64_t bits = kind == Bool   ? (value != 0 ? 1 : 0)
                        : isReal(kind) ? std::bit_cast<uint64_t>(value)
                                       : integerBits(kind, value);
  return add({.op = Expr::Op::Number, .kind = kind, .number = bits});
}

// Where an integer has more bits than a double: its odd neighbour of 53 bits, which rounds to narrower floats as the
// integer itself does.
int Values::roundedToOdd(int value) {
  constexpr double kExact = 0x1p53, kUnit = 0x1p11;
  const ElemKind wide = kind(value);
  int large = apply(Scalar::Lt, wide, number(wide, kExact), value);
  if (isSigned(wide)) large = apply(Scalar::Or, wide, large, apply(Scalar::Lt, wide, value, number(wide, -kExact)));
  const int below = apply(Scalar::And, wide, value, number(wide, kUnit - 1));
  const int kept = apply(Scalar::Sub, wide, value, below);
  const int odd = apply(Scalar::Select, wide, below, apply(Scalar::Or, wide, kept, number(wide, kUnit)), kept);
  return apply(Scalar::Select, wide, large, odd, value);
}

int Values::convert(int value, ElemKind to, bool saturate, ScaleRounding rounding) {
  const bool narrowFloat = isFloat(to) && !isReal(to);
  for (const ElemKind next : conversion(kind(value), to)) {
    const bool last = next == storageKind(to) && narrowFloat;
    if (narrowFloat && next == Float64 && isInteger(kind(value)) && elemBytes(kind(value)) == 8)
      value = roundedToOdd(value);
    value = add({.op = Expr::Op::Convert,
                 .kind = next,
                 .a = value,
                 .saturate = last && saturate && elemInfo(next).bits == 8,
                 .rounding = last && next == Float8E8M0 ? rounding : ScaleRounding::Nearest});
  }
  return value;
}

int Values::apply(Scalar op, ElemKind domain, int a, int b, int c) {
  const bool real = isReal(domain);
  const auto node = [&](ElemKind result, int x, int y, int z) {
    return add({.op = Expr::Op::Apply, .kind = result, .scalar = op, .a = x, .b = y, .c = z});
  };
  const auto as = [&](ElemKind wanted, int value) { return value < 0 ? -1 : convert(value, wanted); };
  const auto truths = [&](int x, int y) { return kind(x) == Bool && kind(y) == Bool; };
  switch (op) {
    case Scalar::And:
    case Scalar::Or:
    case Scalar::Xor:
      if (!real && !truths(a, b)) break;
      return node(Bool, as(Bool, a), as(Bool, b), -1);
    case Scalar::Eq:
      if (truths(a, b)) return node(Bool, a, b, -1);
      return node(Bool, as(domain, a), as(domain, b), -1);
    case Scalar::Lt:
    case Scalar::IsNan:
      return node(Bool, as(domain, a), as(domain, b), -1);
    case Scalar::Select: {
      const ElemKind result = truths(b, c) ? Bool : domain;
      return node(result, as(Bool, a), as(result, b), as(result, c));
    }
    case Scalar::Floor:
    case Scalar::Round:
      if (!real) return a;
      break;
    case Scalar::Abs:
      if (isUnsigned(domain)) return a;
      break;
    case Scalar::Pow: {
      if (real) break;
      const ElemKind wide = isSigned(domain) ? Int64 : UInt64;
      return as(domain, node(wide, as(wide, a), as(wide, b), -1));
    }
    default:
      break;
  }
  return node(domain, as(domain, a), as(domain, b), as(domain, c));
}

int Values::formula(const Attrs& attrs, ElemKind kind, std::span<const int> operands) {
  std::vector<int> values;
  const auto at = [&](const Term& t, uint8_t i, int number) {
    return number <= scalarInfo(t.op).operands ? values[i] : -1;
  };
  for (const Term& t : attrs.op().scalar) {
    if (t.op == Scalar::Arg)
      values.push_back(operands[t.a]);
    else if (t.op == Scalar::Attr)
      values.push_back(number(kind, reference::attributeValue(attrs, t.attr)));
    else if (t.op == Scalar::Const)
      values.push_back(number(kind, t.value));
    else
      values.push_back(apply(t.op, kind, at(t, t.a, 1), at(t, t.b, 2), at(t, t.c, 3)));
  }
  return values.back();
}

// The stored element itself, as the reference rounds it.
int Values::splat(ElemKind kind, double value) {
  uint64_t bits = 0;
  auto* bytes = reinterpret_cast<std::byte*>(&bits);
  narrow(kind, &value, 1, bytes, 0);
  if (isReal(kind)) {
    widen(kind, bytes, 0, 1, 1, &value);
    bits = std::bit_cast<uint64_t>(value);
  } else if (isSigned(kind) && isComputed(kind)) {
    int64_t integer = 0;
    widen(kind, bytes, 0, 1, 1, &integer);
    bits = static_cast<uint64_t>(integer);
  }
  return add({.op = Expr::Op::Number, .kind = kind, .number = bits});
}

// The quotient is rounded as the reference rounds it. What follows is exact in its kind.
int Values::quantize(int value, ElemKind to, int scale, int offset, ElemKind quotients, ElemKind exact) {
  const int quotient = convert(apply(Scalar::Div, quotients, convert(value, quotients), scale), exact);
  const int sum = apply(Scalar::Add, exact, apply(Scalar::Round, exact, quotient), offset);
  const int low = number(exact, static_cast<double>(lowestOf<int64_t>(to)));
  const int high = number(exact, static_cast<double>(highestOf<int64_t>(to)));
  const int held = apply(Scalar::Min, exact, apply(Scalar::Max, exact, sum, low), high);
  return convert(apply(Scalar::Select, exact, apply(Scalar::IsNan, exact, quotient), offset, held), to);
}

// Bytes number the entries as they are stored: from 0, negative ones after the others.
int Values::lookup(int value, std::span<const int64_t> table, ElemKind to) {
  Table wanted{to, {table.begin(), table.end()}};
  if (isSigned(kind(value)))
    std::rotate(wanted.values.begin(), wanted.values.begin() + static_cast<std::ptrdiff_t>(table.size() / 2),
                wanted.values.end());
  const auto it = std::find(nest_.tables.begin(), nest_.tables.end(), wanted);
  const int number = static_cast<int>(it - nest_.tables.begin());
  if (it == nest_.tables.end()) nest_.tables.push_back(std::move(wanted));
  return add({.op = Expr::Op::Lookup, .kind = to, .a = value, .b = number});
}

int Values::instruction(const Program& program, const Instr& instr, const std::function<int(int)>& operand,
                        const PerAxis& perAxis) {
  const Type& result = program[instr.results()[0].region].type;
  const ElemKind to = storageKind(result.kind());
  const auto typeOf = [&](int i) -> const Type& { return program[instr.inputs()[static_cast<size_t>(i)].region].type; };
  const auto parameter = [&](const auto& numbers, const QuantParams& quant, ElemKind table, ElemKind kind) {
    if (quant.axis < 0) return number(kind, static_cast<double>(numbers.front()));
    return convert(perAxis(table, {numbers.begin(), numbers.end()}, quant.axis), kind);
  };

  switch (opOf(instr.attrs.op())) {
    case Op::Splat:
      return splat(to, instr.attrs.real("value"));
    case Op::Cast: {
      const std::string& word = instr.attrs.word("rounding");
      const ScaleRounding rounding = word == "up"     ? ScaleRounding::Up
                                     : word == "down" ? ScaleRounding::Down
                                                      : ScaleRounding::Nearest;
      return convert(operand(0), to, instr.attrs.flag("saturate"), rounding);
    }
    case Op::Quantize: {
      const ElemKind quotients = typeOf(0).kind() == Float64 ? Float64 : Float32;
      const ElemKind exact = elemBytes(to) >= 4 ? Float64 : quotients;
      const int value = operand(0);
      const int scale = parameter(result.quant().scales, result.quant(), Float32, quotients);
      const int offset = parameter(result.quant().offsets, result.quant(), exact, exact);
      return quantize(value, result.kind(), scale, offset, quotients, exact);
    }
    case Op::Dequantize: {
      const QuantParams& quant = typeOf(0).quant();
      const ElemKind kind = to == Float64 || elemBytes(typeOf(0).kind()) >= 4 ? Float64 : Float32;
      const int value = operand(0);
      const int shifted = apply(Scalar::Sub, kind, value, parameter(quant.offsets, quant, kind, kind));
      const int scale = parameter(quant.scales, quant, Float32, kind);
      return convert(apply(Scalar::Mul, kind, shifted, scale), to);
    }
    case Op::Lookup:
      return lookup(operand(0), instr.attrs.ints("table"), to);
    default:
      break;
  }

  std::vector<ElemKind> kinds;
  std::vector<int> operands;
  for (size_t i = 0; i < instr.inputs().size(); ++i) {
    kinds.push_back(typeOf(static_cast<int>(i)).kind());
    operands.push_back(operand(static_cast<int>(i)));
  }
  // What is only moved keeps its bits, signalling NaNs included.
  if (instr.attrs.op().scalar.size() == 1 && storageKind(kinds[0]) == to) return operands[0];
  const ElemKind kind = commonKind(kinds);
  for (int& value : operands)
    if (this->kind(value) != Bool) value = convert(value, kind);
  return convert(formula(instr.attrs, kind, operands), to);
}

}  // namespace aglow::nest
