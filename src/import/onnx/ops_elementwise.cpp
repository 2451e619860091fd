// Elementwise operators whose operands or attributes differ from those of the records.
#include <fmt/format.h>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// One operand after the other into a result.
template <class F>
Value folded(OpImport& c, F&& join) {
  const std::vector<Value> all = c.all();
  if (all.empty()) fail(Code::BadNode, "expected at least one operand");
  Value result = all.front();
  for (size_t i = 1; i < all.size(); ++i) result = join(result, all[i]);
  return result;
}

void minimum(OpImport& c) {
  c.out(folded(c, [&](Value a, Value b) { return c.b.min(a, b); }));
}
void maximum(OpImport& c) {
  c.out(folded(c, [&](Value a, Value b) { return c.b.max(a, b); }));
}
void sum(OpImport& c) {
  c.out(folded(c, [&](Value a, Value b) { return c.b.add(a, b); }));
}
void mean(OpImport& c) {
  const ElemKind kind = c.in(0).kind(), wide = wideKind(kind);
  const Value total = folded(c, [&](Value a, Value b) { return c.b.add(c.b.casted(a, wide), c.b.casted(b, wide)); });
  c.out(c.inputs() == 1 ? total : c.b.casted(c.b.div(total, c.b.scalarLike(total, c.inputs())), kind));
}

void greater(OpImport& c) { c.out(c.b.less(c.in(1), c.in(0))); }
void greaterOrEqual(OpImport& c) { c.out(c.b.lessOrEqual(c.in(1), c.in(0))); }

void mod(OpImport& c) { c.out(c.flag("fmod") ? c.b.rem(c.in(0), c.in(1)) : c.b.mod(c.in(0), c.in(1))); }

ElemKind unsignedKind(ElemKind kind) {
  constexpr auto kStep = static_cast<int>(ElemKind::UInt8) - static_cast<int>(ElemKind::Int8);
  return isSigned(kind) ? static_cast<ElemKind>(static_cast<int>(kind) + kStep) : kind;
}

void bitShift(OpImport& c) {
  const Value x = c.in(0);
  const std::string direction = c.word("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    fail(Code::BadNode, fmt::format("expected 'direction' LEFT or RIGHT, got '{}'", direction));
  if (!isInteger(x.kind())) fail(Code::BadNode, fmt::format("expected integers, got {}", x.type().text()));
  // A negative distance is a huge one without its sign: both shift everything out.
  const ElemKind bits = unsignedKind(x.kind());
  const Value distance = c.b.casted(c.in(1), bits);
  if (direction == "LEFT") return c.out(c.b.casted(c.b.shiftLeft(c.b.casted(x, bits), distance), x.kind()));
  const auto shifted = [&](Value v) { return c.b.casted(c.b.shiftRight(c.b.casted(v, bits), distance), x.kind()); };
  if (isUnsigned(x.kind())) return c.out(shifted(x));
  // Ones instead of zeros come in above a negative number: they are the zeros above its complement.
  const Value negative = c.b.less(x, c.b.scalarLike(x, 0));
  c.out(c.b.where(negative, c.b.bitNot(shifted(c.b.bitNot(x))), shifted(x)));
}

void clip(OpImport& c) {
  const Value x = c.in(0);
  const auto bound = [&](int operand, std::string_view name) {
    if (c.version < 11) return c.hasAttr(name) ? c.b.scalarLike(x, c.real(name)) : Value{};
    return c.has(operand) ? asScalar(c.b, c.in(operand), name) : Value{};
  };
  const Value low = bound(1, "min"), high = bound(2, "max");
  if (low && high) return c.out(c.b.clip(x, low, high));
  c.out(low ? c.b.max(x, low) : high ? c.b.min(x, high) : x);
}

void pRelu(OpImport& c) {
  const Value x = c.in(0);
  Value slope = c.in(1);
  // Before opset 7 a vector of slopes went with the channels.
  if (c.version < 7 && slope.rank() == 1 && slope.dim(0) > 1 && x.rank() > 2) {
    std::vector<int64_t> shape(static_cast<size_t>(x.rank() - 1), 1);
    shape[0] = slope.dim(0);
    slope = c.b.reshaped(slope, shape);
  }
  const Result<Shape> common = broadcastShapes(x.shape(), slope.shape());
  if (!common.ok() || *common != x.shape())
    fail(Code::BadNode,
         fmt::format("expected a 'slope' that broadcasts to {}, got {}", x.type().text(), slope.type().text()));
  c.out(c.b.pRelu(x, slope));
}

void gelu(OpImport& c) {
  const std::string approximate = c.word("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    fail(Code::BadNode, fmt::format("expected 'approximate' none or tanh, got '{}'", approximate));
  c.out(approximate == "tanh" ? c.b.geluTanh(c.in(0)) : c.b.gelu(c.in(0)));
}

// Integers are shrunk by real numbers, too.
void shrink(OpImport& c) {
  const Value x = c.in(0);
  const Value real = isFloat(x.kind()) ? x : c.b.casted(x, ElemKind::Float64);
  c.out(c.b.casted(c.b.shrink(real, {.bias = c.real("bias", 0), .lambd = c.real("lambd", 0.5)}), x.kind()));
}

void swiGlu(OpImport& c) {
  const Value gate = c.in(0), value = c.in(1);
  if (gate.type() != value.type())
    fail(Code::BadNode,
         fmt::format("expected operands of one type, got {} and {}", gate.type().text(), value.type().text()));
  c.out(c.b.mul(c.b.swish(gate, {.alpha = c.real("alpha", 1)}), value));
}

void cumulated(OpImport& c, const std::string& kind) {
  const Value x = c.in(0);
  c.out(c.b.scan(x, {.kind = kind,
                     .axis = c.axis(c.constantInt(1), x.rank()),
                     .exclusive = c.flag("exclusive"),
                     .reverse = c.flag("reverse")}));
}
void cumSum(OpImport& c) { cumulated(c, "sum"); }
void cumProd(OpImport& c) { cumulated(c, "prod"); }

}  // namespace

std::span<const OpRow> elementwiseRows() {
  static constexpr OpRow rows[] = {
      {"Min", minimum},    {"Max", maximum},        {"Sum", sum},
      {"Mean", mean},      {"Greater", greater, 7}, {"GreaterOrEqual", greaterOrEqual},
      {"Mod", mod},        {"BitShift", bitShift},  {"Clip", clip},
      {"PRelu", pRelu, 7}, {"Gelu", gelu},          {"Shrink", shrink},
      {"SwiGLU", swiGlu},  {"CumSum", cumSum},      {"CumProd", cumProd},
  };
  return rows;
}

}  // namespace aglow::onnx
