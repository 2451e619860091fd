#include "grad/expressions.h"

#include <bit>
#include <limits>
#include <utility>

#include "support/check.h"

namespace aglow::grad {

int Expressions::item(const Item& item) {
  const auto [it, added] = numbers_.try_emplace({item.op, item.a, item.b, item.c, std::bit_cast<uint64_t>(item.value)},
                                                static_cast<int>(items_.size()));
  if (added) items_.push_back(item);
  return it->second;
}

int Expressions::add(int a, int b) {
  if (isNumber(a) && isNumber(b)) return number((*this)[a].value + (*this)[b].value);
  if (isNumber(a, 0)) return b;
  if (isNumber(b, 0)) return a;
  if (a == b) return mul(number(2), a);
  if (is(b, Scalar::Neg)) return sub(a, (*this)[b].a);
  if (is(a, Scalar::Neg)) return sub(b, (*this)[a].a);
  return item({.op = Scalar::Add, .a = a, .b = b});
}

int Expressions::sub(int a, int b) {
  if (isNumber(a) && isNumber(b)) return number((*this)[a].value - (*this)[b].value);
  if (isNumber(a, 0)) return neg(b);
  if (isNumber(b, 0)) return a;
  if (is(b, Scalar::Neg)) return add(a, (*this)[b].a);
  return item({.op = Scalar::Sub, .a = a, .b = b});
}

int Expressions::neg(int a) {
  if (isNumber(a)) return number(-(*this)[a].value);
  if (is(a, Scalar::Neg)) return (*this)[a].a;
  return item({.op = Scalar::Neg, .a = a});
}

// factor * (condition ? a : b), where a branch gets simpler by it.
int Expressions::scaledSelect(int factor, int select) {
  const Item s = (*this)[select];
  const bool simpler = isNumber(s.b, 0) || isNumber(s.c, 0) || (isNumber(s.b) && isNumber(s.c)) ||
                       is(s.b, Scalar::Select) || is(s.c, Scalar::Select);
  return simpler ? this->select(s.a, mul(factor, s.b), mul(factor, s.c)) : -1;
}

int Expressions::mul(int a, int b) {
  if (isNumber(a) && isNumber(b)) return number((*this)[a].value * (*this)[b].value);
  if (isNumber(b)) std::swap(a, b);
  if (isNumber(a, 0)) return a;
  if (isNumber(a, 1)) return b;
  if (isNumber(a, -1)) return neg(b);
  if (is(a, Scalar::Neg)) return neg(mul((*this)[a].a, b));
  if (is(b, Scalar::Neg)) return neg(mul(a, (*this)[b].a));
  const Item f = (*this)[a], g = (*this)[b];
  if (isNumber(a) && g.op == Scalar::Mul && isNumber(g.a)) return mul(number(f.value * (*this)[g.a].value), g.b);
  if (f.op == Scalar::Div && isNumber(f.a)) return div(mul(f.a, b), f.b);
  if (g.op == Scalar::Div && isNumber(g.a)) return div(mul(g.a, a), g.b);
  if (g.op == Scalar::Select)
    if (const int made = scaledSelect(a, b); made >= 0) return made;
  if (f.op == Scalar::Select)
    if (const int made = scaledSelect(b, a); made >= 0) return made;
  return item({.op = Scalar::Mul, .a = a, .b = b});
}

int Expressions::shareOfSum(int w, int sum) {
  const Item s = (*this)[sum];
  if (s.op != Scalar::Add || !is(w, Scalar::Exp)) return -1;
  const int other = s.b == w ? s.a : s.a == w ? s.b : -1;
  if (other < 0 || !isNumber(other)) return -1;
  // exp(-|x|) stays below 1 and its quotient is exact as it stands.
  const Item power = (*this)[(*this)[w].a];
  if (power.op == Scalar::Neg && is(power.a, Scalar::Abs)) return -1;
  return div(other, sum);
}

int Expressions::div(int a, int b) {
  if (isNumber(a) && isNumber(b) && !isNumber(b, 0)) return number((*this)[a].value / (*this)[b].value);
  if (isNumber(a, 0)) return a;
  if (isNumber(b, 1)) return a;
  if (is(a, Scalar::Neg)) return neg(div((*this)[a].a, b));
  // w / (c + w) = 1 - c / (c + w), where a w beyond all numbers gives 1.
  if (const int share = shareOfSum(a, b); share >= 0) return sub(number(1), share);
  const Item f = (*this)[a];
  if (f.op == Scalar::Mul) {
    if (const int share = shareOfSum(f.a, b); share >= 0) return mul(f.b, sub(number(1), share));
    if (const int share = shareOfSum(f.b, b); share >= 0) return mul(f.a, sub(number(1), share));
  }
  return item({.op = Scalar::Div, .a = a, .b = b});
}

int Expressions::select(int condition, int a, int b) {
  if (a == b) return a;
  if (isNumber(condition)) return isNumber(condition, 0) ? b : a;
  return item({.op = Scalar::Select, .a = condition, .b = a, .c = b});
}

namespace {

int operandsOf(Scalar op) {
  if (op == Scalar::Select) return 3;
  if (op == Scalar::Not || op == Scalar::IsNan) return 1;
  return op >= Scalar::Neg && op <= Scalar::Erf ? 1 : 2;
}

}  // namespace

int Expressions::apply(Scalar op, int a, int b, int c) {
  switch (op) {
    case Scalar::Add:
      return add(a, b);
    case Scalar::Sub:
      return sub(a, b);
    case Scalar::Mul:
      return mul(a, b);
    case Scalar::Div:
      return div(a, b);
    case Scalar::Neg:
      return neg(a);
    case Scalar::Select:
      return select(a, b, c);
    default:
      return item({.op = op, .a = a, .b = operandsOf(op) > 1 ? b : -1, .c = operandsOf(op) > 2 ? c : -1});
  }
}

int Expressions::derivative(int root, int by) {
  std::map<int, int> known;
  return derived(root, by, root, known);
}

// max(a, b), or min with both sides turned.
int Expressions::derivedExtremum(const Item& f, int da, int db, bool held) {
  const bool isMax = f.op == Scalar::Max;
  const int aWins = isMax ? less(f.b, f.a) : less(f.a, f.b), bWins = isMax ? less(f.a, f.b) : less(f.b, f.a);
  if (held && isNumber(f.b)) return select(aWins, da, number(0));
  if (held && isNumber(f.a)) return select(bWins, db, number(0));
  return select(aWins, da, select(bWins, db, mul(number(0.5), add(da, db))));
}

int Expressions::derived(int i, int by, int root, std::map<int, int>& known) {
  if (const auto it = known.find(i); it != known.end()) return it->second;
  const Item f = (*this)[i];
  const auto of = [&](int operand) { return derived(operand, by, root, known); };
  const int zero = number(0), one = number(1);
  int d = zero;
  switch (f.op) {
    case Scalar::Arg:
      d = f.a == by ? one : zero;
      break;
    case Scalar::Add:
      d = add(of(f.a), of(f.b));
      break;
    case Scalar::Sub:
      d = sub(of(f.a), of(f.b));
      break;
    case Scalar::Mul:
      d = add(mul(of(f.a), f.b), mul(f.a, of(f.b)));
      break;
    case Scalar::Div:
      d = sub(div(of(f.a), f.b), mul(i, div(of(f.b), f.b)));
      break;
    case Scalar::Rem:  // a - b * trunc(a / b)
      d = add(of(f.a), mul(of(f.b), div(sub(i, f.a), f.b)));
      break;
    case Scalar::Pow: {
      // By the exponent, a base of 0 does not move the power.
      const int da = of(f.a), db = of(f.b);
      const int slope = mul(f.b, isNumber(f.b, 2) ? f.a : apply(Scalar::Pow, f.a, sub(f.b, one)));
      const int byBase = isNumber(f.b) ? slope : select(equal(f.b, zero), zero, slope);
      const int byExponent = select(equal(f.a, zero), zero, mul(i, apply(Scalar::Log, f.a)));
      d = add(mul(da, byBase), mul(db, byExponent));
      break;
    }
    case Scalar::Min:
    case Scalar::Max:
      d = derivedExtremum(f, of(f.a), of(f.b), i == root);
      break;
    case Scalar::Neg:
      d = neg(of(f.a));
      break;
    case Scalar::Abs: {
      const int da = of(f.a);
      d = select(less(f.a, zero), neg(da), select(less(zero, f.a), da, zero));
      break;
    }
    case Scalar::Sqrt: {
      // A root by itself is flat at 0, so that norms, whose squares are flat there, have no gradient 0 / 0.
      const int divisor = i == root ? select(equal(i, zero), number(std::numeric_limits<double>::infinity()), i) : i;
      d = div(mul(number(0.5), of(f.a)), divisor);
      break;
    }
    case Scalar::Exp:
      d = mul(of(f.a), i);
      break;
    case Scalar::Expm1:
      d = mul(of(f.a), apply(Scalar::Exp, f.a));
      break;
    case Scalar::Log:
      d = div(of(f.a), f.a);
      break;
    case Scalar::Log1p:
      d = div(of(f.a), add(one, f.a));
      break;
    case Scalar::Sin:
      d = mul(of(f.a), apply(Scalar::Cos, f.a));
      break;
    case Scalar::Cos:
      d = neg(mul(of(f.a), apply(Scalar::Sin, f.a)));
      break;
    case Scalar::Atan:
      d = div(of(f.a), add(one, mul(f.a, f.a)));
      break;
    case Scalar::Tanh:
      d = mul(of(f.a), sub(one, mul(i, i)));
      break;
    case Scalar::Erf: {
      constexpr double kTwoByRootOfPi = 1.12837916709551257390;
      d = mul(of(f.a), mul(number(kTwoByRootOfPi), apply(Scalar::Exp, neg(mul(f.a, f.a)))));
      break;
    }
    case Scalar::Select:
      d = select(f.a, of(f.b), of(f.c));
      break;
    case Scalar::Attr:
      AGLOW_CHECK(false, "attributes are numbers in expressions");
      break;
    // What changes in steps.
    case Scalar::Const:
    case Scalar::Floor:
    case Scalar::Round:
    case Scalar::And:
    case Scalar::Or:
    case Scalar::Xor:
    case Scalar::Not:
    case Scalar::Shl:
    case Scalar::Shr:
    case Scalar::Eq:
    case Scalar::Lt:
    case Scalar::IsNan:
      break;
  }
  known[i] = d;
  return d;
}

}  // namespace aglow::grad
