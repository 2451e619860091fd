// Truth values, comparisons and choices. Comparisons of floats keep what they say of NaN.
#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

Values keep0(const Match& m, Builder& b) { return {expanded(b, m[0], m.result().shape())}; }
Values always(const Match& m, Builder& b) { return {splat(b, m.result().type(), 1)}; }
Values never(const Match& m, Builder& b) { return {splat(b, m.result().type(), 0)}; }
bool comparesIntegers(const Match& m) { return !isFloat(m[0].kind()); }

Value sampleTruth(Rng& rng, Builder& b, Op op, double value) {
  return sampling::withNumber(rng, b, op, value, ElemKind::Bool);
}

Value sampleSelf(Rng& rng, Builder& b, Op op, ElemKind kind) {
  const Value x = sampling::anyInput(rng, b, kind);
  return sampling::apply(b, op, {x, x});
}

std::vector<Rule> truths() {
  return {
      {.name = "and-true",
       .doc = "Both of x and true.",
       .pattern = op(Op::And, {any(0), literal(1)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleTruth(rng, b, Op::And, 1); }},
      {.name = "and-false",
       .doc = "Both of x and false.",
       .pattern = op(Op::And, {any(0), literal(0)}),
       .build = never,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleTruth(rng, b, Op::And, 0); }},
      {.name = "or-false",
       .doc = "One of x and false.",
       .pattern = op(Op::Or, {any(0), literal(0)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleTruth(rng, b, Op::Or, 0); }},
      {.name = "or-true",
       .doc = "One of x and true.",
       .pattern = op(Op::Or, {any(0), literal(1)}),
       .build = always,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleTruth(rng, b, Op::Or, 1); }},
      {.name = "xor-false",
       .doc = "Exactly one of x and false.",
       .pattern = op(Op::Xor, {any(0), literal(0)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleTruth(rng, b, Op::Xor, 0); }},
      {.name = "xor-true",
       .doc = "Exactly one of x and true.",
       .pattern = op(Op::Xor, {any(0), literal(1)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {b.logicalNot(expanded(b, m[0], m.result().shape()))};
       },
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleTruth(rng, b, Op::Xor, 1); }},
      {.name = "and-or-self",
       .doc = "Both or one of a value and itself.",
       .pattern = op(opSet({Op::And, Op::Or, Op::BitAnd, Op::BitOr}), {any(0), any(0)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         return rng.flip() ? sampleSelf(rng, b, rng.flip() ? Op::And : Op::Or, ElemKind::Bool)
                           : sampleSelf(rng, b, rng.flip() ? Op::BitAnd : Op::BitOr, sampling::intKind(rng));
       }},
      {.name = "xor-self",
       .doc = "Exactly one of a value and itself.",
       .pattern = op(opSet({Op::Xor, Op::BitXor}), {any(0), any(0)}),
       .build = never,
       .sample = [](Rng& rng, Builder& b) -> Value {
         return rng.flip() ? sampleSelf(rng, b, Op::Xor, ElemKind::Bool)
                           : sampleSelf(rng, b, Op::BitXor, sampling::intKind(rng));
       }},
      {.name = "not-not",
       .doc = "Two negations of a truth value, or of all bits.",
       .pattern = op(opSet({Op::Not, Op::BitNot}), {op(opSet({Op::Not, Op::BitNot}), {any(0)}).as(1)}),
       .condition = [](const Match& m) { return m.node(1).op() == m.root().op(); },
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         if (rng.flip()) return b.bitNot(b.bitNot(sampling::anyInput(rng, b, sampling::intKind(rng))));
         return b.logicalNot(b.logicalNot(sampling::anyInput(rng, b, ElemKind::Bool)));
       }},
  };
}

std::vector<Rule> comparisons() {
  return {
      {.name = "less-self",
       .doc = "x < x is never true.",
       .pattern = op(Op::Less, {any(0), any(0)}),
       .build = never,
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleSelf(rng, b, Op::Less, sampling::anyKind(rng)); }},
      {.name = "equal-self",
       .doc = "x == x and x <= x are always true, but for floats, where NaN differs.",
       .pattern = op(opSet({Op::Equal, Op::LessOrEqual}), {any(0), any(0)}),
       .condition = comparesIntegers,
       .build = always,
       .sample = [](Rng& rng, Builder& b) -> Value {
         return sampleSelf(rng, b, rng.flip() ? Op::Equal : Op::LessOrEqual, sampling::intKind(rng));
       }},
      {.name = "not-less",
       .doc = "Not x < y is y <= x for integers.",
       .pattern = op(Op::Not, {op(Op::Less, {any(0), any(1)}).once()}),
       .condition = comparesIntegers,
       .build = [](const Match& m, Builder& b) -> Values { return {b.lessOrEqual(m[1], m[0])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::intKind(rng));
         return b.logicalNot(b.less(x, sampling::input(b, x.shape(), x.kind())));
       }},
      {.name = "not-less-or-equal",
       .doc = "Not x <= y is y < x for integers.",
       .pattern = op(Op::Not, {op(Op::LessOrEqual, {any(0), any(1)}).once()}),
       .condition = comparesIntegers,
       .build = [](const Match& m, Builder& b) -> Values { return {b.less(m[1], m[0])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::anyInput(rng, b, sampling::intKind(rng));
         return b.logicalNot(b.lessOrEqual(x, sampling::input(b, x.shape(), x.kind())));
       }},
      {.name = "equal-true",
       .doc = "x == true is x, and x == false its negation.",
       .pattern = op(Op::Equal, {any(0), number(1)}),
       .condition = [](const Match& m) { return m[0].kind() == ElemKind::Bool; },
       .build = [](const Match& m, Builder& b) -> Values {
         const Value x = expanded(b, m[0], m.result().shape());
         return {m.number(1) != 0 ? x : b.logicalNot(x)};
       },
       .sample = [](Rng& rng, Builder& b) -> Value { return sampleTruth(rng, b, Op::Equal, rng.flip() ? 1 : 0); }},
  };
}

std::vector<Rule> choices() {
  return {
      {.name = "where-known",
       .doc = "A choice whose condition is known.",
       .pattern = op(Op::Where, {number(2), any(0), any(1)}),
       .build = [](const Match& m, Builder& b) -> Values {
         return {expanded(b, m.number(2) != 0 ? m[0] : m[1], m.result().shape())};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape shape = sampling::shape(rng, 1, 3);
         const ElemKind kind = sampling::anyKind(rng);
         return b.where(sampling::number(rng, b, rng.flip() ? 1 : 0, shape, ElemKind::Bool),
                        sampling::input(b, sampling::broadcastable(rng, shape), kind), sampling::input(b, shape, kind));
       }},
      {.name = "where-same",
       .doc = "A choice between a value and itself.",
       .pattern = op(Op::Where, {any(1), any(0), any(0)}),
       .build = keep0,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape shape = sampling::shape(rng, 1, 3);
         const Value x = sampling::input(b, sampling::broadcastable(rng, shape), sampling::anyKind(rng));
         return b.where(sampling::input(b, shape, ElemKind::Bool), x, x);
       }},
      {.name = "where-not",
       .doc = "A choice by a negated condition is the opposite choice.",
       .pattern = op(Op::Where, {op(Op::Not, {any(0)}), any(1), any(2)}),
       .build = [](const Match& m, Builder& b) -> Values { return {b.where(m[0], m[2], m[1])}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape shape = sampling::shape(rng, 1, 3);
         return b.where(b.logicalNot(sampling::input(b, shape, ElemKind::Bool)), sampling::input(b, shape),
                        sampling::input(b, sampling::broadcastable(rng, shape)));
       }},
  };
}

}  // namespace

std::vector<Rule> logicRules() { return joined({truths(), comparisons(), choices()}); }

}  // namespace aglow
