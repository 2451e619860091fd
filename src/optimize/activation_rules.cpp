// Activation functions found again in the arithmetic that exporters write them as.
#include <algorithm>
#include <cmath>

#include "optimize/algebra.h"
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

constexpr double kInverseRoot2 = 0.70710678118654752440;
constexpr double kRoot2OverPi = 0.79788456080286535588;
constexpr double kCubicTerm = 0.044715;

bool near(const Match& m, double a, double b) { return nearlyEqual(m.result().kind(), a, b); }

// x * gate(x) with a number as third factor: both factors, either of which may be the gate.
struct Gated {
  Value x, gate;
  double number = 1;
};

// The ways to read a product as x times a gate whose operator is given.
std::optional<Gated> gatedBy(const Match& m, Op op) {
  const Product p = productOf(m.result());
  if (p.factors.size() != 2) return std::nullopt;
  for (const size_t i : {0, 1}) {
    const Value x = p.factors[i], gate = p.factors[1 - i];
    if (gate.node->op() == op && !gate.node->predicate() && x.shape() == m.result().shape())
      return Gated{x, gate, p.number};
  }
  return std::nullopt;
}

// x / 2 * (1 + f(polynomial of x)), however it is written; gives x.
Value halfGated(const Match& m, Op f, const Cubic& argument) {
  const Product p = productOf(m.result());
  if (p.factors.size() != 2) return {};
  for (const size_t i : {0, 1}) {
    const Value x = p.factors[i], gate = p.factors[1 - i];
    const Value inner = findBelow(gate, f);
    if (!inner || x == gate || x.shape() != m.result().shape()) continue;
    const std::optional<Cubic> linear = cubicIn(gate, inner);
    if (!linear || (*linear)[2] != 0 || (*linear)[3] != 0) continue;
    if (!near(m, p.number * (*linear)[0], 0.5) || !near(m, p.number * (*linear)[1], 0.5)) continue;
    if (isCubic(inner.node->input(0), x, argument)) return x;
  }
  return {};
}

const Cubic kErfArgument{0, kInverseRoot2, 0, 0};
const Cubic kTanhArgument{0, kRoot2OverPi, 0, kRoot2OverPi* kCubicTerm};

// One of the orders in which x / 2 * gate is written.
Value sampleHalf(Rng& rng, Builder& b, Value x, Value f) {
  const Value half = b.scalarLike(x, 0.5), gate = sampling::either(rng, b, Op::Add, f, b.scalarLike(x, 1));
  switch (rng.between(0, 3)) {
    case 0:
      return b.mul(b.mul(x, gate), half);
    case 1:
      return b.mul(b.mul(half, x), gate);
    case 2:
      return b.mul(x, b.mul(gate, half));
    default:
      return b.mul(x, b.add(b.mul(f, half), half));
  }
}

std::vector<Rule> smooth() {
  return {
      {.name = "gelu",
       .doc = "x / 2 * (1 + erf(x / sqrt(2))), however written, is Gelu.",
       .kinds = kReals,
       .pattern = op(Op::Mul),
       .condition = [](const Match& m) { return bool(halfGated(m, Op::Erf, kErfArgument)); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.gelu(halfGated(m, Op::Erf, kErfArgument))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         const Value u = rng.flip() ? b.div(x, b.scalarLike(x, std::sqrt(2.0)))
                                    : sampling::either(rng, b, Op::Mul, x, b.scalarLike(x, kInverseRoot2));
         return sampleHalf(rng, b, x, b.erf(u));
       },
       .keeps = Keeps::Rounding},
      {.name = "gelu-tanh",
       .doc =
           "x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), however written, is GeluTanh. Relaxed: very large "
           "x, whose cube overflows.",
       .kinds = kReals,
       .pattern = op(Op::Mul),
       .condition = [](const Match& m) { return bool(halfGated(m, Op::Tanh, kTanhArgument)); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.geluTanh(halfGated(m, Op::Tanh, kTanhArgument))};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         const Value cubic = b.scalarLike(x, kCubicTerm), root = b.scalarLike(x, kRoot2OverPi);
         Value u;
         if (rng.flip())
           u = b.mul(root, b.add(x, b.mul(cubic, b.pow(x, b.scalarLike(x, 3)))));
         else
           u = b.mul(b.mul(x, root), b.add(b.mul(b.mul(cubic, x), x), b.scalarLike(x, 1)));
         return sampleHalf(rng, b, x, b.tanh(u));
       },
       .keeps = Keeps::Finite},
      {.name = "sigmoid",
       .doc = "1 / (1 + exp(-x)) is Sigmoid.",
       .kinds = kReals,
       .pattern = op(Op::Reciprocal, {op(Op::Add, {op(Op::Exp, {op(Op::Neg, {any(0)})}), literal(1)})}),
       .condition = [](const Match& m) { return m[0].shape() == m.result().shape(); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.sigmoid(m[0])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         return b.reciprocal(sampling::either(rng, b, Op::Add, b.exp(b.neg(x)), b.scalarLike(x, 1)));
       },
       .keeps = Keeps::Rounding},
      {.name = "swish",
       .doc = "x * sigmoid(alpha * x) is Swish.",
       .kinds = kReals,
       .pattern = op(Op::Mul),
       .condition =
           [](const Match& m) {
             const auto g = gatedBy(m, Op::Sigmoid);
             const auto u = g && near(m, g->number, 1) ? cubicIn(g->gate.node->input(0), g->x) : std::nullopt;
             return u && (*u)[0] == 0 && (*u)[1] != 0 && (*u)[2] == 0 && (*u)[3] == 0;
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const auto g = gatedBy(m, Op::Sigmoid);
         return {b.swish(g->x, {.alpha = (*cubicIn(g->gate.node->input(0), g->x))[1]})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         const Value u = rng.flip() ? x : b.mul(x, b.scalarLike(x, 1.5));
         return sampling::either(rng, b, Op::Mul, x, b.sigmoid(u));
       },
       .keeps = Keeps::Rounding},
      {.name = "swish-quotient",
       .doc = "x / (1 + exp(-x)) is Swish.",
       .kinds = kReals,
       .pattern = op(Op::Div, {any(0), op(Op::Add, {op(Op::Exp, {op(Op::Neg, {any(0)})}), literal(1)})}),
       .condition = [](const Match& m) { return m[0].shape() == m.result().shape(); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.swish(m[0], {.alpha = 1})}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         return b.div(x, sampling::either(rng, b, Op::Add, b.exp(b.neg(x)), b.scalarLike(x, 1)));
       },
       .keeps = Keeps::Rounding},
      {.name = "softplus",
       .doc = "log(1 + exp(x)) is Softplus. Relaxed: exp(x) no longer overflows.",
       .kinds = kReals,
       .pattern = op(Op::Log, {op(Op::Add, {op(Op::Exp, {any(0)}), literal(1)})}),
       .condition = [](const Match& m) { return m[0].shape() == m.result().shape(); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.softplus(m[0])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         return b.log(sampling::either(rng, b, Op::Add, b.exp(x), b.scalarLike(x, 1)));
       },
       .keeps = Keeps::Finite},
      {.name = "mish",
       .doc = "x * tanh(softplus(x)) is Mish.",
       .kinds = kReals,
       .pattern = op(Op::Mul, {any(0), op(Op::Tanh, {op(Op::Softplus, {any(0)})})}),
       .build = [](const Match& m, Builder& b) -> Values { return {b.mish(m[0])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         return sampling::either(rng, b, Op::Mul, x, b.tanh(b.softplus(x)));
       },
       .keeps = Keeps::Rounding},
  };
}

// clip(x + 3, 0, 6), and what makes a sixth of it.
Pattern clippedSum() { return op(Op::Clip, {op(Op::Add, {any(0), literal(3)}), literal(0), literal(6)}); }

std::vector<Rule> piecewise() {
  return {
      {.name = "hard-sigmoid",
       .doc = "clip(a * x + b, 0, 1) is HardSigmoid.",
       .kinds = kReals,
       .pattern = op(Op::Clip, {op(Op::Add, {either({op(Op::Mul, {any(0), number(1)}), any(0)}), number(2)}),
                                literal(0), literal(1)}),
       .condition = [](const Match& m) { return m[0].shape() == m.result().shape(); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.hardSigmoid(m[0], {.alpha = m[1] ? m.number(1) : 1, .beta = m.number(2)})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         const Value u = rng.flip() ? x : b.mul(x, b.scalarLike(x, 0.25));
         return b.clip(b.add(u, b.scalarLike(x, 0.5)), b.scalarLike(x, 0), b.scalarLike(x, 1));
       },
       .keeps = Keeps::Rounding},
      {.name = "hard-sigmoid-sixth",
       .doc = "clip(x + 3, 0, 6) / 6 is HardSigmoid.",
       .kinds = kReals,
       .pattern = op(opSet({Op::Mul, Op::Div}), {clippedSum(), number(1)}),
       .condition =
           [](const Match& m) {
             const double factor = m.root().op() == Op::Div ? 1 / m.number(1) : m.number(1);
             return near(m, factor, 1.0 / 6) && m[0].shape() == m.result().shape();
           },
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.hardSigmoid(m[0], {.alpha = 1.0 / 6, .beta = 0.5})};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         const Value y = b.clip(b.add(x, b.scalarLike(x, 3)), b.scalarLike(x, 0), b.scalarLike(x, 6));
         return rng.flip() ? b.div(y, b.scalarLike(x, 6)) : b.mul(y, b.scalarLike(x, 1.0 / 6));
       },
       .keeps = Keeps::Rounding},
      {.name = "hard-swish",
       .doc = "x * HardSigmoid(x) with a sixth and a half, or x * clip(x + 3, 0, 6) / 6, is HardSwish.",
       .kinds = kReals,
       .pattern = op(opSet({Op::Mul, Op::Div})),
       .condition =
           [](const Match& m) {
             if (const auto g = gatedBy(m, Op::HardSigmoid))
               return near(m, g->number, 1) && near(m, g->gate.node->attrs().real("alpha"), 1.0 / 6) &&
                      near(m, g->gate.node->attrs().real("beta"), 0.5) && g->gate.node->input(0) == g->x;
             const auto g = gatedBy(m, Op::Clip);
             if (!g || !near(m, g->number, 1.0 / 6)) return false;
             const Node& clip = *g->gate.node;
             return splatValue(clip.input(1)) == 0 && splatValue(clip.input(2)) == 6 &&
                    isCubic(clip.input(0), g->x, {3, 1, 0, 0});
           },
       .build = [](const Match& m, Builder& b) -> Values {
         const auto g = gatedBy(m, Op::HardSigmoid);
         return {b.hardSwish(g ? g->x : gatedBy(m, Op::Clip)->x)};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         if (rng.flip()) return sampling::either(rng, b, Op::Mul, x, b.hardSigmoid(x, {.alpha = 1.0 / 6, .beta = 0.5}));
         const Value clip = b.clip(b.add(x, b.scalarLike(x, 3)), b.scalarLike(x, 0), b.scalarLike(x, 6));
         if (rng.flip()) return b.div(b.mul(x, clip), b.scalarLike(x, 6));
         return b.mul(x, b.mul(clip, b.scalarLike(x, 1.0 / 6)));
       },
       .keeps = Keeps::Rounding},
      {.name = "leaky-relu",
       .doc = "max(x, alpha * x) is LeakyRelu where alpha lies between 0 and 1.",
       .kinds = kReals,
       .pattern = op(Op::Max, {any(0), op(Op::Mul, {any(0), number(1)})}),
       .condition =
           [](const Match& m) { return m.number(1) > 0 && m.number(1) < 1 && m[0].shape() == m.result().shape(); },
       .build = [](const Match& m, Builder& b) -> Values { return {b.leakyRelu(m[0], {.alpha = m.number(1)})}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b);
         return sampling::either(rng, b, Op::Max, x, b.mul(x, b.scalarLike(x, 0.25)));
       },
       .keeps = Keeps::Rounding},
  };
}

}  // namespace

std::vector<Rule> activationRules() { return joined({smooth(), piecewise()}); }

}  // namespace aglow
