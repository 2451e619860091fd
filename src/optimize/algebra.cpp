#include "optimize/algebra.h"

#include <algorithm>
#include <cmath>

#include "rewrite/pattern.h"

namespace aglow {

namespace {

// Patterns of model files are not deeper; the bound keeps a search from walking long chains again and again.
constexpr int kDepth = 7;
constexpr size_t kFactors = 4;

bool readable(const Node& node) { return !node.isStorage() && !node.predicate(); }

void collect(Value v, int depth, Product& product) {
  if (const std::optional<double> number = splatValue(v)) {
    product.number *= *number;
    return;
  }
  const Node& node = *v.node;
  const bool deeper = depth < kDepth && readable(node) && product.factors.size() < kFactors;
  const std::vector<Value> inputs = node.inputs();
  if (deeper && node.op() == Op::Mul) {
    collect(inputs[0], depth + 1, product);
    collect(inputs[1], depth + 1, product);
  } else if (deeper && node.op() == Op::Neg) {
    product.number = -product.number;
    collect(inputs[0], depth + 1, product);
  } else if (deeper && node.op() == Op::Div && splatValue(inputs[1])) {
    product.number /= *splatValue(inputs[1]);
    collect(inputs[0], depth + 1, product);
  } else {
    product.factors.push_back(v);
  }
}

std::optional<Cubic> times(const Cubic& a, const Cubic& b) {
  Cubic out{};
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j) {
      if (a[i] == 0 || b[j] == 0) continue;
      if (i + j >= out.size()) return std::nullopt;
      out[i + j] += a[i] * b[j];
    }
  return out;
}

Cubic scaled(Cubic c, double factor) {
  for (double& v : c) v *= factor;
  return c;
}

std::optional<Cubic> expand(Value v, Value x, int depth);

std::optional<Cubic> expandNode(const Node& node, Value x, int depth) {
  const std::vector<Value> inputs = node.inputs();
  const auto operand = [&](size_t i) { return expand(inputs[i], x, depth + 1); };
  const auto sum = [&](double sign) -> std::optional<Cubic> {
    std::optional<Cubic> a = operand(0);
    const std::optional<Cubic> b = a ? operand(1) : std::nullopt;
    if (!b) return std::nullopt;
    for (size_t i = 0; i < a->size(); ++i) (*a)[i] += sign * (*b)[i];
    return a;
  };
  switch (node.op()) {
    case Op::Add:
      return sum(1);
    case Op::Sub:
      return sum(-1);
    case Op::Neg: {
      const auto a = operand(0);
      return a ? std::optional(scaled(*a, -1)) : std::nullopt;
    }
    case Op::Mul: {
      const auto a = operand(0), b = a ? operand(1) : std::nullopt;
      return b ? times(*a, *b) : std::nullopt;
    }
    case Op::Div: {
      const auto divisor = splatValue(inputs[1]);
      const auto a = divisor && *divisor != 0 ? operand(0) : std::nullopt;
      return a ? std::optional(scaled(*a, 1 / *divisor)) : std::nullopt;
    }
    case Op::Pow: {
      const auto exponent = splatValue(inputs[1]);
      const auto a = exponent && (*exponent == 2 || *exponent == 3) ? operand(0) : std::nullopt;
      auto power = a ? times(*a, *a) : std::nullopt;
      return power && *exponent == 3 ? times(*power, *a) : power;
    }
    default:
      return std::nullopt;
  }
}

std::optional<Cubic> expand(Value v, Value x, int depth) {
  if (v == x) return Cubic{0, 1, 0, 0};
  if (const std::optional<double> number = splatValue(v)) return Cubic{*number, 0, 0, 0};
  if (depth >= kDepth || !readable(*v.node)) return std::nullopt;
  return expandNode(*v.node, x, depth);
}

Value find(Value v, Op op, int depth) {
  const Node& node = *v.node;
  if (node.op() == op) return v;
  const bool passable = node.op() == Op::Add || node.op() == Op::Sub || node.op() == Op::Mul || node.op() == Op::Neg ||
                        node.op() == Op::Div;
  if (!passable || depth >= 3 || !readable(node)) return {};
  for (const Value operand : node.inputs())
    if (const Value found = find(operand, op, depth + 1)) return found;
  return {};
}

}  // namespace

Product productOf(Value v) {
  Product product;
  collect(v, 0, product);
  return product;
}

std::optional<Cubic> cubicIn(Value v, Value x) { return v.shape() == x.shape() ? expand(v, x, 0) : std::nullopt; }

bool isCubic(Value v, Value x, const Cubic& expected) {
  const std::optional<Cubic> found = cubicIn(v, x);
  if (!found) return false;
  for (size_t i = 0; i < expected.size(); ++i)
    if (!nearlyEqual(x.kind(), (*found)[i], expected[i])) return false;
  return true;
}

Value findBelow(Value v, Op op) { return find(v, op, 0); }

}  // namespace aglow
