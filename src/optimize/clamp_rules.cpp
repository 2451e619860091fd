// Minimum, maximum, clip and relu: chains of them become one. NaN passes through all of them unchanged.
#include <cmath>
#include <limits>

#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// x stays a value of its own; two constants are folded instead.
bool apart(const Match& m) { return !isConstant(m[0]); }
Values keep0(const Match& m, Builder& b) { return {expanded(b, m[0], m.result().shape())}; }

// A bound that does not bind: infinite, or the end of an integer kind's range.
bool isOpenEnd(ElemKind kind, double value, bool upper) {
  if (isFloat(kind)) return value == (upper ? kInf : -kInf);
  const int bits = elemInfo(kind).bits;
  if (bits > 32) return false;
  const double high = std::ldexp(1.0, isSigned(kind) ? bits - 1 : bits) - 1;
  return isInteger(kind) && value == (upper ? high : isSigned(kind) ? -high - 1 : 0);
}

Value sampleBound(Rng& rng, Builder& b, Value x, double low, double high) {
  return sampling::constant(rng, b, sampling::broadcastable(rng, x.shape()), x.kind(), low, high);
}

Value sampleClip(Rng& rng, Builder& b, Value x) {
  return b.clip(x, sampleBound(rng, b, x, -3, 1), sampleBound(rng, b, x, -1, 3));
}

std::vector<Rule> pairs() {
  return {
      {.name = "min-max-self",
       .doc = "The minimum or maximum of a value and itself.",
       .kinds = kNumerics,
       .pattern = op(opSet({Op::Min, Op::Max}), {any(0), any(0)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return sampling::apply(b, rng.flip() ? Op::Min : Op::Max, {x, x});
       }},
      {.name = "min-min",
       .doc = "min(min(x, c), d) is min(x, min(c, d)).",
       .kinds = kNumerics,
       .pattern = op(Op::Min, {op(Op::Min, {any(0), constant(1)}).once(), constant(2)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values { return {b.min(m[0], b.min(m[1], m[2]))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.min(b.min(x, sampleBound(rng, b, x, -3, 3)), sampleBound(rng, b, x, -3, 3));
       },
       .keeps = Keeps::Rounding},
      {.name = "max-max",
       .doc = "max(max(x, c), d) is max(x, max(c, d)).",
       .kinds = kNumerics,
       .pattern = op(Op::Max, {op(Op::Max, {any(0), constant(1)}).once(), constant(2)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values { return {b.max(m[0], b.max(m[1], m[2]))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.max(b.max(x, sampleBound(rng, b, x, -3, 3)), sampleBound(rng, b, x, -3, 3));
       },
       .keeps = Keeps::Rounding},
      {.name = "min-of-max",
       .doc = "min(max(x, low), high) is a clip.",
       .kinds = kNumerics,
       .pattern = op(Op::Min, {op(Op::Max, {any(0), constant(1)}).once(), constant(2)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values { return {b.clip(m[0], m[1], m[2])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.min(b.max(x, sampleBound(rng, b, x, -3, 3)), sampleBound(rng, b, x, -3, 3));
       },
       .keeps = Keeps::Rounding},
      {.name = "max-of-min",
       .doc = "max(min(x, high), low) is a clip where low is below high.",
       .kinds = kNumerics,
       .pattern = op(Op::Max, {op(Op::Min, {any(0), number(1)}).once(), number(2)}),
       .condition = [](const Match& m) { return apart(m) && m.number(2) <= m.number(1); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, b.clip(m[0], scalarOf(b, m, 2), scalarOf(b, m, 1)), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return b.max(b.min(x, b.scalarLike(x, 2)), sampling::number(rng, b, 1, x.shape(), x.kind()));
       },
       .keeps = Keeps::Rounding},
      {.name = "max-zero",
       .doc = "max(x, 0) is relu.",
       .kinds = kNumerics,
       .pattern = op(Op::Max, {any(0), literal(0)}),
       .build = [](const Match& m, Builder& b) -> Values { return {b.relu(expanded(b, m[0], m.result().shape()))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         return sampling::withNumber(rng, b, Op::Max, 0, sampling::anyKind(rng));
       },
       .keeps = Keeps::Rounding},
      {.name = "min-relu",
       .doc = "min(relu(x), c) is clip(x, 0, c).",
       .kinds = kNumerics,
       .pattern = op(Op::Min, {op(Op::Relu, {any(0)}).once(), constant(1)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values { return {b.clip(m[0], b.scalarLike(m[0], 0), m[1])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return sampling::either(rng, b, Op::Min, b.relu(x), sampleBound(rng, b, x, -1, 3));
       },
       .keeps = Keeps::Rounding},
  };
}

std::vector<Rule> clips() {
  return {
      {.name = "clip-clip",
       .doc = "Two clips between constants are one.",
       .kinds = kNumerics,
       .pattern = op(Op::Clip, {op(Op::Clip, {any(0), constant(1), constant(2)}).once(), constant(3), constant(4)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.clip(m[0], b.clip(m[1], m[3], m[4]), b.clip(m[2], m[3], m[4]))};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::anyKind(rng));
         return sampleClip(rng, b, sampleClip(rng, b, x));
       },
       .keeps = Keeps::Rounding},
      {.name = "relu-clip",
       .doc = "relu(clip(x, low, high)) is clip(x, relu(low), relu(high)).",
       .kinds = kNumerics,
       .pattern = op(Op::Relu, {op(Op::Clip, {any(0), constant(1), constant(2)}).once()}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values { return {b.clip(m[0], b.relu(m[1]), b.relu(m[2]))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         return b.relu(sampleClip(rng, b, sampling::anyInput(rng, b, sampling::anyKind(rng))));
       },
       .keeps = Keeps::Rounding},
      {.name = "clip-relu",
       .doc = "clip(relu(x), low, high) is clip(x, clip(0, low, high), high).",
       .kinds = kNumerics,
       .pattern = op(Op::Clip, {op(Op::Relu, {any(0)}).once(), constant(1), constant(2)}),
       .condition = apart,
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.clip(m[0], b.clip(b.scalarLike(m[0], 0), m[1], m[2]), m[2])};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         return sampleClip(rng, b, b.relu(sampling::anyInput(rng, b, sampling::anyKind(rng))));
       },
       .keeps = Keeps::Rounding},
      {.name = "clip-no-high",
       .doc = "A clip without an upper bound is a maximum.",
       .kinds = kNumerics,
       .pattern = op(Op::Clip, {any(0), any(1), number(2)}),
       .condition = [](const Match& m) { return isOpenEnd(m.result().kind(), m.number(2), true); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, b.max(m[0], m[1]), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, rng.pick<ElemKind>({ElemKind::Float32, ElemKind::UInt8}));
         return b.clip(x, sampleBound(rng, b, x, -1, 1), b.scalarLike(x, isFloat(x.kind()) ? kInf : 255));
       }},
      {.name = "clip-no-low",
       .doc = "A clip without a lower bound is a minimum.",
       .kinds = kNumerics,
       .pattern = op(Op::Clip, {any(0), number(1), any(2)}),
       .condition = [](const Match& m) { return isOpenEnd(m.result().kind(), m.number(1), false); },
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, b.min(m[0], m[2]), m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, rng.pick<ElemKind>({ElemKind::Float32, ElemKind::Int8}));
         return b.clip(x, b.scalarLike(x, isFloat(x.kind()) ? -kInf : -128), sampleBound(rng, b, x, -1, 1));
       }},
      {.name = "open-bound",
       .doc = "A minimum or maximum with an infinite bound, or with the end of an integer kind's range.",
       .kinds = kNumerics,
       .pattern = op(opSet({Op::Min, Op::Max}), {any(0), number(1)}),
       .condition = [](const Match& m) { return isOpenEnd(m.result().kind(), m.number(1), m.root().op() == Op::Min); },
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         return rng.flip() ? sampling::withNumber(rng, b, Op::Min, kInf, ElemKind::Float32)
                           : sampling::withNumber(rng, b, Op::Max, 0, ElemKind::UInt8);
       }},
  };
}

}  // namespace

std::vector<Rule> clampRules() { return joined({clips(), pairs()}); }

}  // namespace aglow
