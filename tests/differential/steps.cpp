#include "steps.h"

#include <array>
#include <cmath>

namespace aglow::differential {

bool isExact(Scalar step) {
  switch (step) {
    case Scalar::Add:
    case Scalar::Sub:
    case Scalar::Mul:
    case Scalar::Div:
    case Scalar::Rem:
    case Scalar::Pow:
    case Scalar::Sqrt:
    case Scalar::Exp:
    case Scalar::Expm1:
    case Scalar::Log:
    case Scalar::Log1p:
    case Scalar::Sin:
    case Scalar::Cos:
    case Scalar::Atan:
    case Scalar::Tanh:
    case Scalar::Erf:
      return false;
    default:
      return true;
  }
}

namespace {

double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

double apply(Scalar step, double a, double b, double c) {
  switch (step) {
    case Scalar::Add:
      return a + b;
    case Scalar::Sub:
      return a - b;
    case Scalar::Mul:
      return a * b;
    case Scalar::Div:
      return a / b;
    case Scalar::Rem:
      return std::fmod(a, b);
    case Scalar::Pow:
      return std::pow(a, b);
    case Scalar::Min:
      return std::isnan(b) ? b : smaller(a, b);
    case Scalar::Max:
      return std::isnan(b) ? b : larger(a, b);
    case Scalar::Neg:
      return -a;
    case Scalar::Abs:
      return std::abs(a);
    case Scalar::Floor:
      return std::floor(a);
    case Scalar::Round:
      return std::nearbyint(a);
    case Scalar::Sqrt:
      return std::sqrt(a);
    case Scalar::Exp:
      return std::exp(a);
    case Scalar::Expm1:
      return std::expm1(a);
    case Scalar::Log:
      return std::log(a);
    case Scalar::Log1p:
      return std::log1p(a);
    case Scalar::Sin:
      return std::sin(a);
    case Scalar::Cos:
      return std::cos(a);
    case Scalar::Atan:
      return std::atan(a);
    case Scalar::Tanh:
      return std::tanh(a);
    case Scalar::Erf:
      return std::erf(a);
    case Scalar::And:
      return a != 0 && b != 0 ? 1 : 0;
    case Scalar::Or:
      return a != 0 || b != 0 ? 1 : 0;
    case Scalar::Eq:
      return a == b ? 1 : 0;
    case Scalar::Lt:
      return a < b ? 1 : 0;
    case Scalar::IsNan:
      return std::isnan(a) ? 1 : 0;
    case Scalar::Select:
      return a != 0 ? b : c;
    default:
      AGLOW_CHECK(false, "a step that formulas over floats do not have");
      return 0;
  }
}

double attributeOf(const Attrs& attrs, std::string_view name) {
  const AttrValue& value = attrs.at(attrs.indexOf(name));
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

// The operand's elements in the order of the result's.
std::vector<double> stretched(const Tensor& operand, const Shape& shape) {
  const std::vector<double> from = operand.doubles();
  const std::vector<int64_t> strides = broadcastStrides(operand.type().shape(), shape), steps = shape.strides();
  std::vector<double> to(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < to.size(); ++i) {
    int64_t at = 0;
    for (int axis = 0; axis < shape.rank(); ++axis)
      at +=
          static_cast<int64_t>(i) / steps[static_cast<size_t>(axis)] % shape[axis] * strides[static_cast<size_t>(axis)];
    to[i] = from[static_cast<size_t>(at)];
  }
  return to;
}

}  // namespace

Tensor movedFormula(Random& random, const Node& node, const std::vector<Tensor>& operands, double units) {
  const Formula& formula = node.def().scalar;
  const Shape& shape = node.type().shape();
  const bool wide = operands.back().type().kind() == ElemKind::Float64;
  const double reach = units * (wide ? 0x1p-52 : 0x1p-23), least = wide ? 0 : units * 0x1p-149;
  std::vector<std::vector<double>> in;
  for (const Tensor& operand : operands) in.push_back(stretched(operand, shape));
  std::vector<double> out(static_cast<size_t>(shape.elements()));
  std::array<double, Formula::kMaxTerms> terms{};
  for (size_t i = 0; i < out.size(); ++i) {
    for (int t = 0; t < formula.size(); ++t) {
      const Term& term = formula[t];
      double& v = terms[static_cast<size_t>(t)];
      if (term.op == Scalar::Arg)
        v = in[term.a][i];
      else if (term.op == Scalar::Attr)
        v = attributeOf(node.attrs(), term.attr);
      else if (term.op == Scalar::Const)
        v = term.value;
      else
        v = apply(term.op, terms[term.a], terms[term.b], terms[term.c]);
      if (!isExact(term.op)) v += std::abs(v) * random.real(-reach, reach) + random.real(-least, least);
      // What is too large for the kind of the computation overflows at once.
      if (!wide && std::isfinite(v)) v = static_cast<double>(static_cast<float>(v));
    }
    out[i] = terms[static_cast<size_t>(formula.size() - 1)];
  }
  return Tensor::fromDoubles(node.type(), out);
}

}  // namespace aglow::differential
