// Constants: computed when compiling, and kept as small as broadcasting allows.
#include <algorithm>
#include <cmath>

#include "optimize/building.h"
#include "optimize/rules.h"
#include "optimize/sampling.h"

namespace aglow {

using namespace pattern;  // NOLINT: the rules' own language

namespace {

// How many multiplications the heavy operators take; others are as cheap as their results are small.
double workOf(const Node& node) {
  const auto elements = [&](int operand) { return static_cast<double>(node.input(operand).type().elements()); };
  const auto results = static_cast<double>(node.type().elements());
  switch (node.op()) {
    case Op::MatMul:
      return results * static_cast<double>(node.input(0).dim(node.input(0).rank() - 1));
    case Op::Conv:
    case Op::ConvTranspose:
      return std::max(results, elements(0)) * elements(1) / std::max(1.0, static_cast<double>(node.input(1).dim(0)));
    default:
      return results;
  }
}

// Folding keeps within twice the operands' bytes (or a few pages), and within a second of work.
bool isWorthFolding(const Node& node) {
  constexpr int64_t kAlwaysFine = 64 << 10;
  constexpr double kMaxWork = 1e8;
  int64_t in = 0, out = 0;
  for (const Value v : node.inputs()) in += v ? v.type().bytes() : 0;
  for (const Type& type : node.types()) out += type.bytes();
  return out <= std::max(kAlwaysFine, 2 * in) && workOf(node) <= kMaxWork;
}

bool hasKnownOperands(const Match& m) {
  bool constant = false;
  for (const Value v : m.root().inputs()) {
    if (v && !isConstant(v) && knownTensor(v).empty()) return false;
    constant |= isConstant(v);
  }
  return constant && isWorthFolding(m.root());
}

// Where the evaluator reports an error, the node stays and reports it at run time.
Values foldConstants(const Match& m, Builder& b) {
  std::vector<Tensor> inputs;
  for (const Value v : m.root().inputs()) inputs.push_back(knownTensor(v));
  Result<std::vector<Tensor>> results = m.evaluator().evaluate(m.root(), inputs);
  if (!results.ok()) return {};
  Values values;
  for (Tensor& t : *results) values.push_back(b.constant(std::move(t)));
  return values;
}

// A number that the attribute of a Splat holds exactly.
bool isExactNumber(ElemKind kind, double value) { return !isInteger(kind) || std::abs(value) < 0x1p53; }

bool allNumbers(const Match& m) {
  if (m.result().type().elements() <= 1 || m.root().inputCount() == 0) return false;
  const std::vector<Value> inputs = m.root().inputs();
  return std::all_of(inputs.begin(), inputs.end(), [](Value v) { return splatValue(v).has_value(); });
}

Values foldNumbers(const Match& m, Builder& b) {
  std::vector<Value> scalars;
  std::vector<Tensor> tensors;
  for (const Value v : m.root().inputs()) {
    tensors.push_back(Tensor::scalar(v.kind(), *splatValue(v)));
    scalars.push_back(b.constant(tensors.back()));
  }
  const Value one = like(b, m.root(), scalars);
  const Result<std::vector<Tensor>> result = m.evaluator().evaluate(*one.node, tensors);
  if (!result.ok()) return {};
  const double value = result->front().doubles().front();
  if (!isExactNumber(m.result().kind(), value)) return {};
  return {splat(b, m.result().type(), value)};
}

// The first operand that is a number with axes which the result does not need.
int shrinkableOperand(const Node& node) {
  for (int i = 0; i < node.inputCount(); ++i) {
    const Value v = node.input(i);
    if (v && v.rank() > 0 && splatValue(v) && commonShape(node, i, Shape{}) == node.type().shape()) return i;
  }
  return -1;
}

}  // namespace

std::vector<Rule> constantRules() {
  OpSet numeric = opsOf(OpKind::Elementwise) | opSet({Op::Cast});
  numeric.reset(static_cast<size_t>(Op::Expand));
  OpSet moving = opSet({Op::Reshape, Op::Transpose, Op::Slice, Op::Expand});
  return {
      {.name = "expand-number",
       .doc = "A number expanded is a Splat.",
       .pattern = op(Op::Expand, {number(0)}),
       .condition = [](const Match& m) { return m.result().type().elements() > 1; },
       .build = [](const Match& m, Builder& b) -> Values { return {splat(b, m.result().type(), m.number(0))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape to = Shape{2, rng.between(1, 4), rng.between(1, 4)};
         return b.expand(sampling::number(rng, b, 3, to, sampling::anyKind(rng)), {.shape = to.dims()});
       }},
      {.name = "move-splat",
       .doc = "Moving the elements of a Splat changes nothing but its shape.",
       .pattern = op(moving, {op(Op::Splat).as(0)}),
       .build = [](const Match& m, Builder& b) -> Values { return {splat(b, m.result().type(), m.number(0))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape from = sampling::shape(rng, 1, 3);
         const Value x = b.splat({.value = 2, .elem = sampling::anyKind(rng), .shape = from.dims()});
         if (rng.flip()) return b.transpose(x, {.perm = sampling::perm(rng, from.rank())});
         return b.reshape(x, {.shape = {from.elements()}});
       }},
      {.name = "splat-scalar",
       .doc = "A Splat of one element is a constant.",
       .pattern = op(Op::Splat).as(0),
       .condition = [](const Match& m) { return m.result().type().elements() <= 1; },
       .build = [](const Match& m, Builder& b) -> Values { return {b.constant(knownTensor(m[0]))}; },
       .sample = [](Rng& rng, Builder& b) -> Value {
         return b.splat({.value = 2, .elem = sampling::anyKind(rng), .shape = Ints(rng.flip() ? 0 : 2, 1)});
       }},
      {.name = "fold-numbers",
       .doc = "Elementwise operators on numbers are computed once for all elements.",
       .pattern = op(numeric),
       .condition = allNumbers,
       .build = foldNumbers,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape shape{2, rng.between(1, 4)};
         const ElemKind kind = sampling::anyKind(rng);
         const Value x = b.splat({.value = 3, .elem = kind, .shape = shape.dims()});
         const Value y = sampling::number(rng, b, 2, shape, kind);
         return rng.flip() ? b.less(x, y) : sampling::either(rng, b, Op::Mul, x, y);
       }},
      {.name = "fold-constants",
       .doc = "A node whose operands are constants is computed when compiling, if the result is not much larger.",
       .pattern = op(allNodes()),
       .condition = hasKnownOperands,
       .build = foldConstants,
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Value x = sampling::constant(rng, b, {2, 3});
         const Value y = sampling::constant(rng, b, {3, 2});
         if (rng.flip()) return b.matMul(x, y);
         if (rng.flip()) return b.softmax(x, {.axis = 0});
         return b.add(x, b.splat({.value = 2, .shape = {2, 3}}));
       }},
      {.name = "shrink-number",
       .doc = "A number that broadcasting repeats anyway is a scalar.",
       .pattern = op(numeric),
       .condition = [](const Match& m) { return shrinkableOperand(m.root()) >= 0; },
       .build = [](const Match& m, Builder& b) -> Values {
         std::vector<Value> inputs = m.root().inputs();
         Value& operand = inputs[static_cast<size_t>(shrinkableOperand(m.root()))];
         operand = b.scalar(operand.kind(), *splatValue(operand));
         return {like(b, m.root(), inputs)};
       },
       .sample = [](Rng& rng, Builder& b) -> Value {
         const Shape shape = sampling::shape(rng, 1, 3);
         const ElemKind kind = sampling::anyKind(rng);
         const Value y = b.splat({.value = 2, .elem = kind, .shape = shape.dims()});
         return sampling::either(rng, b, Op::Add, sampling::input(b, shape, kind), y);
       }},
  };
}

}  // namespace aglow
