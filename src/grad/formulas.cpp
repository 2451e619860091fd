// Gradients of elementwise operators, derived from the formulas of their records and written as elementwise nodes.
#include <array>
#include <unordered_map>

#include "grad/expressions.h"
#include "grad/rules.h"
#include "grad/shapes.h"
#include "graph/wide.h"

namespace aglow::grad {

namespace {

// The operator that is one primitive alone.
Op operatorOf(Scalar primitive) {
  static const std::array<Op, kScalars> table = [] {
    std::array<Op, kScalars> ops{};
    ops.fill(Op::Constant);
    const auto row = [&](Scalar primitive, Op op) { ops[static_cast<size_t>(primitive)] = op; };
    row(Scalar::Add, Op::Add);
    row(Scalar::Sub, Op::Sub);
    row(Scalar::Mul, Op::Mul);
    row(Scalar::Div, Op::Div);
    row(Scalar::Rem, Op::Rem);
    row(Scalar::Pow, Op::Pow);
    row(Scalar::Min, Op::Min);
    row(Scalar::Max, Op::Max);
    row(Scalar::Neg, Op::Neg);
    row(Scalar::Abs, Op::Abs);
    row(Scalar::Floor, Op::Floor);
    row(Scalar::Round, Op::Round);
    row(Scalar::Sqrt, Op::Sqrt);
    row(Scalar::Exp, Op::Exp);
    row(Scalar::Expm1, Op::Expm1);
    row(Scalar::Log, Op::Log);
    row(Scalar::Log1p, Op::Log1p);
    row(Scalar::Sin, Op::Sin);
    row(Scalar::Cos, Op::Cos);
    row(Scalar::Atan, Op::Atan);
    row(Scalar::Tanh, Op::Tanh);
    row(Scalar::Erf, Op::Erf);
    row(Scalar::And, Op::And);
    row(Scalar::Or, Op::Or);
    row(Scalar::Xor, Op::Xor);
    row(Scalar::Eq, Op::Equal);
    row(Scalar::Lt, Op::Less);
    row(Scalar::IsNan, Op::IsNan);
    row(Scalar::Select, Op::Where);
    return ops;
  }();
  const Op op = table[static_cast<size_t>(primitive)];
  AGLOW_CHECK(op != Op::Constant, "formulas of floats hold no bits to shift");
  return op;
}

double attributeOf(const Attrs& attrs, std::string_view name) {
  const AttrValue& value = attrs.at(attrs.indexOf(name));
  const auto* integer = std::get_if<int64_t>(&value);
  return integer != nullptr ? static_cast<double>(*integer) : std::get<double>(value);
}

// Expressions over a node's operands, and the nodes that compute them. The gradient that comes back stands after the
// operands, as one more of them.
class FormulaGradient {
public:
  explicit FormulaGradient(const Backward& s) : s_(s) {
    const Formula& formula = s.node.def().scalar;
    std::vector<int> items;
    for (const Term& term : formula) {
      const auto at = [&](uint8_t i) { return i < items.size() ? items[i] : -1; };
      switch (term.op) {
        case Scalar::Arg:
          items.push_back(operand(term.a));
          break;
        case Scalar::Attr:
          items.push_back(all_.number(attributeOf(s.node.attrs(), term.attr)));
          break;
        case Scalar::Const:
          items.push_back(all_.number(term.value));
          break;
        default:
          items.push_back(all_.apply(term.op, at(term.a), at(term.b), at(term.c)));
      }
    }
    root_ = items.back();
    incoming_ = all_.arg(s.node.inputCount());
  }

  // Of one operand.
  Value run(int operand) {
    const int gradient = all_.mul(incoming_, all_.derivative(root_, operand));
    if (all_.isNumber(gradient, 0)) return {};
    const Value x = s_.in(operand);
    return s_.b.casted(summedTo(s_.b, value(gradient), x.shape()), x.kind());
  }

private:
  // A number where the operand is one and nobody asks for its gradient.
  int operand(int i) {
    const Constant* constant = asConstant(s_.in(i));
    if (constant != nullptr && !s_.wants(i) && constant->type().kind() != ElemKind::Bool &&
        constant->tensor().isSplat() && constant->type().elements() > 0)
      return all_.number(constant->tensor().doubles().front());
    return all_.arg(i);
  }

  // The node's own result stands for its formula.
  Value value(int i) {
    if (i == root_ && s_.node.type().kind() != ElemKind::Bool) return widened(s_.b, s_.node.result());
    if (const auto it = values_.find(i); it != values_.end()) return it->second;
    const Expressions::Item item = all_[i];
    Value made;
    if (item.op == Scalar::Arg) {
      made = item.a == s_.node.inputCount() ? s_.dy[0] : s_.in(item.a);
      if (made.kind() != ElemKind::Bool) made = s_.b.casted(made, wideKind(s_.node.type().kind()));
    } else if (item.op == Scalar::Const) {
      made = s_.b.scalar(wideKind(s_.node.type().kind()), item.value);
    } else {
      std::vector<Value> operands;
      for (const int operand : {item.a, item.b, item.c})
        if (operand >= 0) operands.push_back(value(operand));
      made = s_.b.make(operands, Attrs(opDef(operatorOf(item.op))))->result();
    }
    values_.emplace(i, made);
    return made;
  }

  const Backward& s_;
  Expressions all_;
  int root_ = 0, incoming_ = 0;
  std::unordered_map<int, Value> values_;
};

}  // namespace

std::vector<Value> byFormula(const Backward& s) {
  FormulaGradient gradient(s);
  std::vector<Value> all;
  for (int i = 0; i < s.node.inputCount(); ++i) all.push_back(s.wants(i) ? gradient.run(i) : Value{});
  return all;
}

}  // namespace aglow::grad
