// Constants gathered: chains of sums and products with constants become one sum and one product. All of these change
// the order of rounding, and where an intermediate result overflows; none applies when the gathered constant would be
// infinite or vanish although its parts did not.
#include <algorithm>
#include <cmath>

#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

// Two constants combined by an operator, when compiling; empty when that loses numbers or makes a larger constant.
Value combined(const Match& m, Builder& b, Op op, int first, int second) {
  const Value x = m[first], y = m[second];
  const Value both = b.make({x, y}, Attrs(opDef(op)))->result();
  if (both.type().elements() > std::max(x.type().elements(), y.type().elements())) return {};
  const std::vector<Tensor> inputs{m.tensor(first), m.tensor(second)};
  const Result<std::vector<Tensor>> result = m.evaluator().evaluate(*both.node, inputs);
  if (!result.ok()) return {};
  if (isFloat(both.kind()) && op != Op::Add) {
    constexpr double kSmallest = 1e-30, kLargest = 1e30;
    for (const double v : result->front().doubles())
      if (!(std::abs(v) > kSmallest && std::abs(v) < kLargest)) return {};
  }
  return b.constant(result->front());
}

// x stays a value of its own; two constants are folded instead.
bool apart(const Match& m) { return !isConstant(m[0]); }

struct Parts {
  Value x, c, d, e;
};

Parts sampleParts(Rng& rng, Builder& b, bool real) {
  const Shape shape = sampling::shape(rng, 1, 3), small = sampling::broadcastable(rng, shape);
  const ElemKind kind = real ? sampling::floatKind(rng) : sampling::anyKind(rng);
  const auto constant = [&] { return sampling::constant(rng, b, rng.flip() ? small : Shape{}, kind, 0.5, 2); };
  const Value x = sampling::input(b, shape, kind);
  const Value c = constant(), d = constant(), e = constant();
  return {x, c, d, e};
}

}  // namespace

std::vector<Rule> gatheringRules() {
  return {
      {.name = "add-add",
       .doc = "(x + c) + d is x + (c + d). Relaxed: rounding and overflow of the first sum.",
       .kinds = kNumerics,
       .pattern = op(Op::Add, {op(Op::Add, {any(0), constant(1)}).once(), constant(2)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values {
         const Value c = combined(m, b, Op::Add, 1, 2);
         return c ? Values{b.add(m[0], c)} : Values{};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Parts p = sampleParts(rng, b, false);
         return sampling::either(rng, b, Op::Add, sampling::either(rng, b, Op::Add, p.x, p.c), p.d);
       },
       .keeps = Keeps::Finite},
      {.name = "mul-mul",
       .doc = "(x * c) * d is x * (c * d). Relaxed: overflow and underflow of the first product.",
       .kinds = kNumerics,
       .pattern = op(Op::Mul, {op(Op::Mul, {any(0), constant(1)}).once(), constant(2)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values {
         const Value c = combined(m, b, Op::Mul, 1, 2);
         return c ? Values{b.mul(m[0], c)} : Values{};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Parts p = sampleParts(rng, b, false);
         return sampling::either(rng, b, Op::Mul, sampling::either(rng, b, Op::Mul, p.x, p.c), p.d);
       },
       .keeps = Keeps::Finite},
      {.name = "mul-div",
       .doc = "(x * c) / d is x * (c / d). Relaxed: overflow and underflow of the product.",
       .kinds = kReals,
       .pattern = op(Op::Div, {op(Op::Mul, {any(0), constant(1)}).once(), constant(2)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values {
         const Value c = combined(m, b, Op::Div, 1, 2);
         return c ? Values{b.mul(m[0], c)} : Values{};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Parts p = sampleParts(rng, b, true);
         return b.div(sampling::either(rng, b, Op::Mul, p.x, p.c), p.d);
       },
       .keeps = Keeps::Finite},
      {.name = "div-mul",
       .doc = "(x / c) * d is x * (d / c). Relaxed: overflow and underflow of the quotient.",
       .kinds = kReals,
       .pattern = op(Op::Mul, {op(Op::Div, {any(0), constant(1)}).once(), constant(2)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values {
         const Value c = combined(m, b, Op::Div, 2, 1);
         return c ? Values{b.mul(m[0], c)} : Values{};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Parts p = sampleParts(rng, b, true);
         return sampling::either(rng, b, Op::Mul, b.div(p.x, p.c), p.d);
       },
       .keeps = Keeps::Finite},
      {.name = "scale-affine",
       .doc = "(x * c + d) * e is x * (c * e) + d * e. Relaxed: rounding and overflow on the way.",
       .kinds = kNumerics,
       .pattern =
           op(Op::Mul, {op(Op::Add, {op(Op::Mul, {any(0), constant(1)}).once(), constant(2)}).once(), constant(3)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values {
         const Value scale = combined(m, b, Op::Mul, 1, 3), offset = b.mul(m[2], m[3]);
         return scale ? Values{b.add(b.mul(m[0], scale), offset)} : Values{};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Parts p = sampleParts(rng, b, false);
         return sampling::either(
             rng, b, Op::Mul, sampling::either(rng, b, Op::Add, sampling::either(rng, b, Op::Mul, p.x, p.c), p.d), p.e);
       },
       .keeps = Keeps::Finite},
  };
}

}  // namespace aglow
