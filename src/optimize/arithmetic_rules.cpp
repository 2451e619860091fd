// Identities of sums, products, quotients, signs and powers. On floats they hold for NaN and infinities as well, unless
// a rule says that it is relaxed; only the sign of a zero may change.
#include <algorithm>
#include <cmath>

#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

// A captured value in place of the root.
Values keep0(const Match& m, Builder& b) { return {expanded(b, m[0], m.result().shape())}; }
Values negate0(const Match& m, Builder& b) { return {b.neg(expanded(b, m[0], m.result().shape()))}; }
Values zero(const Match& m, Builder& b) { return {splat(b, m.result().type(), 0)}; }

bool isConstantAt1Only(const Match& m) { return !isConstant(m[0]); }

// Whether dividing by any element is the same as multiplying by its reciprocal.
bool areExactDivisors(const Tensor& t) {
  // Exponents whose negation every kind but f16 can hold; that one has its own, smaller range.
  const int limit = t.type().kind() == ElemKind::Float16 ? 14 : 126;
  const std::vector<double> values = t.doubles();
  return std::all_of(values.begin(), values.end(), [&](double v) {
    int exponent = 0;
    return std::abs(std::frexp(v, &exponent)) == 0.5 && std::abs(exponent - 1) <= limit;
  });
}

Value sampleNumber(Rng& rng, Builder& b, Op op, double value) {
  return sampling::withNumber(rng, b, op, value, sampling::anyKind(rng));
}

std::vector<Rule> sums() {
  return {
      {.name = "add-zero",
       .doc = "x + 0 is x.",
       .kinds = kNumerics,
       .pattern = op(Op::Add, {any(0), literal(0)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleNumber(rng, b, Op::Add, 0); },
       .keeps = Keeps::Rounding},
      {.name = "sub-zero",
       .doc = "x - 0 is x.",
       .kinds = kNumerics,
       .pattern = op(Op::Sub, {any(0), literal(0)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleNumber(rng, b, Op::Sub, 0); }},
      {.name = "zero-sub",
       .doc = "0 - x is -x.",
       .kinds = kNumerics,
       .pattern = op(Op::Sub, {literal(0), any(0)}),
       .build = negate0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.sub(sampling::number(rng, b, 0, x.shape(), x.kind()), x);
       },
       .keeps = Keeps::Rounding},
      {.name = "sub-self",
       .doc = "x - x is 0 for integers.",
       .kinds = kinds::ints,
       .pattern = op(Op::Sub, {any(0), any(0)}),
       .build = zero,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::intKind(rng));
         return b.sub(x, x);
       }},
      {.name = "sub-constant",
       .doc = "x - c is x + (-c), so that constants meet in sums.",
       .kinds = kNumerics,
       .pattern = op(Op::Sub, {any(0), constant(1)}),
       .condition = isConstantAt1Only,
       .build = [](const Match& m, Builder& b) -> Values { return {b.add(m[0], b.neg(m[1]))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.sub(x, sampling::constant(rng, b, sampling::broadcastable(rng, x.shape()), x.kind()));
       }},
      {.name = "add-neg",
       .doc = "x + (-y) is x - y.",
       .kinds = kNumerics,
       .pattern = op(Op::Add, {any(0), op(Op::Neg, {any(1)})}),
       .condition = [](const Match& m) { return !isConstant(m[1]); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.sub(m[0], m[1])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return sampling::either(rng, b, Op::Add, x, b.neg(sampling::input(b, x.shape(), x.kind())));
       }},
      {.name = "sub-neg",
       .doc = "x - (-y) is x + y.",
       .kinds = kNumerics,
       .pattern = op(Op::Sub, {any(0), op(Op::Neg, {any(1)})}),
       .build = [](const Match& m, Builder& b) -> Values { return {b.add(m[0], m[1])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.sub(x, b.neg(sampling::input(b, x.shape(), x.kind())));
       }},
      {.name = "neg-sub",
       .doc = "-(x - y) is y - x.",
       .kinds = kNumerics,
       .pattern = op(Op::Neg, {op(Op::Sub, {any(0), any(1)}).once()}),
       .build = [](const Match& m, Builder& b) -> Values { return {b.sub(m[1], m[0])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.neg(b.sub(x, sampling::input(b, x.shape(), x.kind())));
       },
       .keeps = Keeps::Rounding},
  };
}

std::vector<Rule> products() {
  return {
      {.name = "mul-one",
       .doc = "x * 1 is x.",
       .kinds = kNumerics,
       .pattern = op(Op::Mul, {any(0), literal(1)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleNumber(rng, b, Op::Mul, 1); }},
      {.name = "mul-zero",
       .doc = "x * 0 is 0 for integers.",
       .kinds = kinds::ints,
       .pattern = op(Op::Mul, {any(0), literal(0)}),
       .build = zero,
       .sample = [](Rng& rng, Builder& b) -> Value {
         return sampling::withNumber(rng, b, Op::Mul, 0, sampling::intKind(rng));
       }},
      {.name = "mul-minus-one",
       .doc = "x * -1 is -x.",
       .kinds = kNumerics,
       .pattern = op(Op::Mul, {any(0), literal(-1)}),
       .build = negate0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         return sampling::withNumber(rng, b, Op::Mul, -1, sampling::floatKind(rng));
       }},
      {.name = "div-one",
       .doc = "x / 1 is x.",
       .kinds = kNumerics,
       .pattern = op(Op::Div, {any(0), literal(1)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleNumber(rng, b, Op::Div, 1); }},
      {.name = "div-power-of-two",
       .doc = "x / c is x * (1 / c) where both are the same number: c a power of two.",
       .kinds = kReals,
       .pattern = op(Op::Div, {any(0), constant(1)}),
       .condition = [](const Match& m) { return isConstantAt1Only(m) && areExactDivisors(m.tensor(1)); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.mul(m[0], b.reciprocal(m[1]))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::floatKind(rng));
         return b.div(x, b.scalar(x.kind(), std::ldexp(rng.flip() ? 1 : -1, static_cast<int>(rng.between(-9, 9)))));
       }},
      {.name = "one-div",
       .doc = "1 / x is the reciprocal of x.",
       .kinds = kReals,
       .pattern = op(Op::Div, {literal(1), any(0)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, b.reciprocal(m[0]), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::floatKind(rng));
         return b.div(sampling::number(rng, b, 1, x.shape(), x.kind()), x);
       }},
      {.name = "mul-reciprocal",
       .doc = "x * (1 / y) is x / y, unless y is the smaller one. Relaxed: 1 / y may overflow.",
       .kinds = kReals,
       .pattern = op(Op::Mul, {any(0), op(Op::Reciprocal, {any(1)}).once()}),
       .condition = [](const Match& m) { return m[1].shape() == m.result().shape(); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.div(m[0], m[1])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::floatKind(rng));
         return sampling::either(rng, b, Op::Mul, x, b.reciprocal(sampling::input(b, x.shape(), x.kind())));
       },
       .keeps = Keeps::Finite},
      {.name = "div-reciprocal",
       .doc = "x / (1 / y) is x * y. Relaxed: 1 / y may overflow.",
       .kinds = kReals,
       .pattern = op(Op::Div, {any(0), op(Op::Reciprocal, {any(1)})}),
       .build = [](const Match& m, Builder& b) -> Values { return {b.mul(m[0], m[1])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::floatKind(rng));
         return b.div(x, b.reciprocal(sampling::input(b, x.shape(), x.kind())));
       },
       .keeps = Keeps::Finite},
  };
}

std::vector<Rule> signs() {
  return {
      {.name = "neg-neg",
       .doc = "-(-x) is x.",
       .kinds = kNumerics,
       .pattern = op(Op::Neg, {op(Op::Neg, {any(0)})}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         return b.neg(b.neg(sampling::anyInput(rng, b, sampling::anyKind(rng))));
       }},
      {.name = "neg-of-scaled",
       .doc = "-(x * c) is x * (-c).",
       .kinds = kNumerics,
       .pattern = op(Op::Neg, {op(Op::Mul, {any(0), constant(1)}).once()}),
       .condition = isConstantAt1Only,
       .build = [](const Match& m, Builder& b) -> Values { return {b.mul(m[0], b.neg(m[1]))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.neg(b.mul(x, sampling::constant(rng, b, sampling::broadcastable(rng, x.shape()), x.kind())));
       }},
      {.name = "scaled-neg",
       .doc = "(-x) * c is x * (-c).",
       .kinds = kNumerics,
       .pattern = op(Op::Mul, {op(Op::Neg, {any(0)}), constant(1)}),
       .condition = isConstantAt1Only,
       .build = [](const Match& m, Builder& b) -> Values { return {b.mul(m[0], b.neg(m[1]))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         const Value c = sampling::constant(rng, b, sampling::broadcastable(rng, x.shape()), x.kind());
         return sampling::either(rng, b, Op::Mul, b.neg(x), c);
       }},
      {.name = "even-of-neg",
       .doc = "Functions that do not see the sign: |-x|, cos(-x), cosh(-x).",
       .kinds = kReals,
       .pattern = op(opSet({Op::Abs, Op::Cos, Op::Cosh}), {op(Op::Neg, {any(0)})}),
       .build = [](const Match& m, Builder& b) -> Values { return {like(b, m.root(), {m[0]})}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         return sampling::apply(b, rng.pick<Op>({Op::Abs, Op::Cos, Op::Cosh}), {b.neg(sampling::anyInput(rng, b))});
       }},
      {.name = "idempotent",
       .doc = "Functions that change nothing the second time: abs, sign, floor, ceil, round, relu.",
       .pattern = op(opSet({Op::Abs, Op::Sign, Op::Floor, Op::Ceil, Op::Round, Op::Relu}), {any(0)}),
       .condition = [](const Match& m) { return m.node(0).op() == m.root().op(); },
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Op twice = rng.pick<Op>({Op::Abs, Op::Sign, Op::Floor, Op::Ceil, Op::Round, Op::Relu});
         return sampling::apply(b, twice, {sampling::apply(b, twice, {sampling::anyInput(rng, b)})});
       }},
      {.name = "relu-of-nonnegative",
       .doc = "Relu of what is never negative: abs, exp, sigmoid, softplus.",
       .kinds = kReals,
       .pattern = op(Op::Relu, {op(opSet({Op::Abs, Op::Exp, Op::Sigmoid, Op::Softplus})).as(0)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Op inner = rng.pick<Op>({Op::Abs, Op::Exp, Op::Sigmoid, Op::Softplus});
         return b.relu(sampling::apply(b, inner, {sampling::anyInput(rng, b)}));
       }},
  };
}

Value samplePower(Rng& rng, Builder& b, double exponent) {
  const Value x = sampling::anyInput(rng, b, sampling::floatKind(rng));
  const ElemKind kind = exponent == std::floor(exponent) && rng.flip() ? ElemKind::Int32 : x.kind();
  return b.pow(x, sampling::number(rng, b, exponent, x.shape(), kind));
}

std::vector<Rule> powers() {
  return {
      {.name = "pow-zero",
       .doc = "x to the power of 0 is 1, whatever x is.",
       .kinds = kNumerics,
       .pattern = op(Op::Pow, {any(0), literal(0)}),
       .build = [](const Match& m, Builder& b) -> Values { return {splat(b, m.result().type(), 1)}; },
       .sample = [](Rng& rng, Builder& b) -> Value { return samplePower(rng, b, 0); }},
      {.name = "pow-one",
       .doc = "x to the power of 1 is x.",
       .kinds = kNumerics,
       .pattern = op(Op::Pow, {any(0), literal(1)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value { return samplePower(rng, b, 1); }},
      {.name = "pow-two",
       .doc = "x to the power of 2 is x * x.",
       .kinds = kReals,
       .pattern = op(Op::Pow, {any(0), literal(2)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, b.mul(m[0], m[0]), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value { return samplePower(rng, b, 2); },
       .keeps = Keeps::Rounding},
      {.name = "pow-three",
       .doc = "x to the power of 3 is x * x * x. Relaxed: x * x may overflow or vanish first.",
       .kinds = kReals,
       .pattern = op(Op::Pow, {any(0), literal(3)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, b.mul(b.mul(m[0], m[0]), m[0]), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value { return samplePower(rng, b, 3); },
       .keeps = Keeps::Finite},
      {.name = "pow-minus-one",
       .doc = "x to the power of -1 is 1 / x.",
       .kinds = kReals,
       .pattern = op(Op::Pow, {any(0), literal(-1)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, b.reciprocal(m[0]), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value { return samplePower(rng, b, -1); },
       .keeps = Keeps::Rounding},
      {.name = "pow-half",
       .doc = "x to the power of 0.5 is the square root. Relaxed: that of minus infinity becomes NaN.",
       .kinds = kReals,
       .pattern = op(Op::Pow, {any(0), literal(0.5)}),
       .build = [](const Match& m, Builder& b) -> Values { return {expanded(b, b.sqrt(m[0]), m.result().shape())}; },
       .sample = [](Rng& rng, Builder& b) -> Value { return samplePower(rng, b, 0.5); },
       .keeps = Keeps::Finite},
      {.name = "pow-minus-half",
       .doc = "x to the power of -0.5 is 1 / sqrt(x). Relaxed: that of minus infinity becomes NaN.",
       .kinds = kReals,
       .pattern = op(Op::Pow, {any(0), literal(-0.5)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, b.reciprocal(b.sqrt(m[0])), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value { return samplePower(rng, b, -0.5); },
       .keeps = Keeps::Finite},
  };
}

}  // namespace

std::vector<Rule> arithmeticRules() { return joined({sums(), products(), signs(), powers()}); }

}  // namespace aglow
