// Operators on one element after the other, and those that only pass values on.
#include <fmt/format.h>

#include "import/caffe2/args.h"
#include "import/caffe2/op_tables.h"

namespace aglow::caffe2 {

namespace {

template <auto Method>
void unary(OpImport& c) {
  c.out((c.b.*Method)(c.in(0)));
}

// The second operand in line with the axes of the first that it belongs to. Older nets say where those begin; without
// a word the operands broadcast as numpy's.
Value aligned(const OpImport& c, Value a, Value b) {
  const std::string axisName = wordArg(c, "axis_str", "");
  if (!flag(c, "broadcast") && !c.hasAttr("axis") && axisName.empty()) return b;
  if (b.type().elements() == 1) return c.b.reshaped(b, {});
  int64_t axis = intArg(c, "axis", -1);
  if (!axisName.empty()) {
    const size_t at = wordArg(c, "order", "NCHW").find(axisName);
    if (axisName.size() != 1 || at == std::string::npos)
      fail(Code::BadNode, fmt::format("expected a letter of 'order' in 'axis_str', got '{}'", axisName));
    axis = static_cast<int64_t>(at);
  }
  if (axis == -1) axis = a.rank() - b.rank();
  if (axis < 0 || axis + b.rank() > a.rank())
    fail(Code::BadNode, fmt::format("{} does not fit into {} from axis {} on", b.type().text(), a.type().text(), axis));
  std::vector<int64_t> dims = b.shape().dims();
  dims.resize(static_cast<size_t>(a.rank() - axis), 1);
  return c.b.reshaped(b, std::move(dims));
}

template <auto Method>
void binary(OpImport& c) {
  const Value a = c.in(0);
  c.out((c.b.*Method)(a, aligned(c, a, c.in(1))));
}

template <auto Method>
void swappedBinary(OpImport& c) {
  const Value a = c.in(0);
  c.out((c.b.*Method)(aligned(c, a, c.in(1)), a));
}

void notEqual(OpImport& c) {
  const Value a = c.in(0);
  c.out(c.b.logicalNot(c.b.equal(a, aligned(c, a, c.in(1)))));
}

void power(OpImport& c) {
  const Value a = c.in(0);
  if (!c.has(1)) return c.out(c.b.pow(a, c.b.scalarLike(a, realArg(c, "exponent"))));
  c.out(c.b.pow(a, aligned(c, a, c.in(1))));
}

// One operand after the other into a result.
template <auto Method>
Value folded(OpImport& c) {
  Value result = c.in(0);
  for (int i = 1; i < c.inputs(); ++i) result = (c.b.*Method)(result, c.in(i));
  return result;
}

template <auto Method>
void fold(OpImport& c) {
  c.out(folded<Method>(c));
}

void sumRelu(OpImport& c) { c.out(c.b.relu(folded<&Builder::add>(c))); }

void mean(OpImport& c) {
  const Value total = folded<&Builder::add>(c);
  c.out(c.b.div(total, c.b.scalarLike(total, c.inputs())));
}

// Values and their weights, which are single numbers, take turns.
void weightedSum(OpImport& c) {
  if (c.inputs() < 2 || c.inputs() % 2 != 0)
    fail(Code::BadNode, fmt::format("expected pairs of values and weights, got {} inputs", c.inputs()));
  Value total;
  for (int i = 0; i < c.inputs(); i += 2) {
    const Value part = c.b.mul(c.in(i), onnx::asScalar(c.b, c.in(i + 1), "weight"));
    total = total ? c.b.add(total, part) : part;
  }
  c.out(total);
}

void modulo(OpImport& c) {
  const Value x = c.in(0);
  const int64_t divisor = intArg(c, "divisor");
  if (divisor == 0 || !isInteger(x.kind()))
    fail(Code::BadNode,
         fmt::format("expected whole numbers and a 'divisor' other than 0, got {} and {}", x.type().text(), divisor));
  const Value by = c.b.constant(Tensor::of(Type(x.kind(), Shape{}), std::vector<int64_t>{divisor}));
  c.out(flag(c, "sign_follow_divisor") ? c.b.mod(x, by) : c.b.rem(x, by));
}

// For one condition a row.
void conditional(OpImport& c) {
  Value condition = c.in(0);
  const Value a = c.in(1);
  if (condition.rank() < a.rank()) {
    std::vector<int64_t> dims = condition.shape().dims();
    dims.resize(static_cast<size_t>(a.rank()), 1);
    condition = c.b.reshaped(condition, std::move(dims));
  }
  c.out(c.b.where(condition, a, c.in(2)));
}

// For one condition an element, unless the node says otherwise.
void where(OpImport& c) {
  if (flag(c, "broadcast_on_rows")) return conditional(c);
  c.out(c.b.where(c.in(0), c.in(1), c.in(2)));
}

void cast(OpImport& c) { c.out(c.b.casted(c.in(0), kindArg(c, "to"))); }
void toHalf(OpImport& c) { c.out(c.b.casted(c.in(0), ElemKind::Float16)); }
void toFloat(OpImport& c) { c.out(c.b.casted(c.in(0), ElemKind::Float32)); }

void pass(OpImport& c) {
  static_cast<void>(c.in(0));  // names what is missing
  c.out(0, c.operand(0));
}

// In nets that do not train, dropout passes its input on; all of the mask is set.
void dropout(OpImport& c) {
  c.out(0, c.in(0));
  if (c.wants(1)) c.out(1, c.b.splat({.value = 1, .elem = ElemKind::Bool, .shape = c.in(0).shape().dims()}));
}

}  // namespace

std::span<const OpRow> elementwiseRows() {
  static constexpr OpRow rows[] = {
      row("Relu", unary<&Builder::relu>),
      row("Sigmoid", unary<&Builder::sigmoid>),
      row("Tanh", unary<&Builder::tanh>),
      row("Exp", unary<&Builder::exp>),
      row("Log", unary<&Builder::log>),
      row("Sqrt", unary<&Builder::sqrt>),
      row("Abs", unary<&Builder::abs>),
      row("Negative", unary<&Builder::neg>),
      row("Sign", unary<&Builder::sign>),
      row("Floor", unary<&Builder::floor>),
      row("Ceil", unary<&Builder::ceil>),
      row("Reciprocal", unary<&Builder::reciprocal>),
      row("Sin", unary<&Builder::sin>),
      row("Cos", unary<&Builder::cos>),
      row("Tan", unary<&Builder::tan>),
      row("Asin", unary<&Builder::asin>),
      row("Acos", unary<&Builder::acos>),
      row("Atan", unary<&Builder::atan>),
      row("Sinh", unary<&Builder::sinh>),
      row("Cosh", unary<&Builder::cosh>),
      row("Erf", unary<&Builder::erf>),
      row("Softsign", unary<&Builder::softsign>),
      row("Softplus", unary<&Builder::softplus>),
      row("IsNaN", unary<&Builder::isNan>),
      row("Not", unary<&Builder::logicalNot>),
      row("Add", binary<&Builder::add>),
      row("Sub", binary<&Builder::sub>),
      row("Mul", binary<&Builder::mul>),
      row("Div", binary<&Builder::div>),
      row("EQ", binary<&Builder::equal>),
      row("NE", notEqual),
      row("LT", binary<&Builder::less>),
      row("LE", binary<&Builder::lessOrEqual>),
      row("GT", swappedBinary<&Builder::less>),
      row("GE", swappedBinary<&Builder::lessOrEqual>),
      row("And", binary<&Builder::logicalAnd>),
      row("Or", binary<&Builder::logicalOr>),
      row("Xor", binary<&Builder::logicalXor>),
      row("BitwiseAnd", binary<&Builder::bitAnd>),
      row("BitwiseOr", binary<&Builder::bitOr>),
      row("BitwiseXor", binary<&Builder::bitXor>),
      row("Pow", power),
      row("Sum", fold<&Builder::add>),
      row("SumRelu", sumRelu),
      row("Max", fold<&Builder::max>),
      row("Min", fold<&Builder::min>),
      row("Mean", mean),
      row("WeightedSum", weightedSum),
      row("Mod", modulo),
      row("Where", where),
      row("Conditional", conditional),
      row("Cast", cast),
      row("FloatToHalf", toHalf),
      row("HalfToFloat", toFloat),
      row("Copy", pass),
      row("CopyCPUToGPU", pass),
      row("CopyGPUToCPU", pass),
      row("CopyOnDeviceLike", pass),
      row("CopyFromCPUInput", pass),
      row("EnsureCPUOutput", pass),
      row("EnsureDense", pass),
      row("Alias", pass),
      row("StopGradient", pass),
      row("ZeroGradient", pass),
      row("NanCheck", pass),
      row("Dropout", dropout),
  };
  return rows;
}

}  // namespace aglow::caffe2
