// Patterns: construction, and matching with a list of goals so that every choice can be taken back.
#include "rewrite/pattern.h"

#include <cmath>

#include "ops/all_ops.h"

namespace aglow {

Pattern Pattern::as(int captured) && {
  AGLOW_CHECK(captured < Captures::kMax, "a pattern captures too many values: raise Captures::kMax");
  capture = captured;
  return std::move(*this);
}

Pattern Pattern::once() && {
  usedOnce = true;
  return std::move(*this);
}

namespace pattern {

namespace {

Pattern leaf(Pattern::Kind kind) {
  Pattern p;
  p.kind = kind;
  return p;
}

}  // namespace

Pattern any(int capture) { return leaf(Pattern::Kind::Any).as(capture); }
Pattern constant(int capture) { return leaf(Pattern::Kind::Constant).as(capture); }
Pattern number(int capture) { return leaf(Pattern::Kind::Number).as(capture); }
Pattern absent() { return leaf(Pattern::Kind::Absent); }

Pattern literal(double value) {
  Pattern p = leaf(Pattern::Kind::Number);
  p.number = value;
  return p;
}

Pattern op(const OpSet& ops, std::initializer_list<Pattern> operands) {
  Pattern p = leaf(Pattern::Kind::Node);
  p.ops = ops;
  p.children = operands;
  return p;
}

Pattern op(Op op, std::initializer_list<Pattern> operands) { return pattern::op(opSet({op}), operands); }

Pattern either(std::initializer_list<Pattern> alternatives) {
  Pattern p = leaf(Pattern::Kind::Either);
  p.children = alternatives;
  return p;
}

OpSet opSet(std::initializer_list<Op> ops) {
  OpSet set;
  for (const Op op : ops) set.set(static_cast<size_t>(op));
  return set;
}

OpSet opsOf(OpKind kind) {
  OpSet set;
  AGLOW_CHECK(allOps().size() <= set.size(), "more operators than an OpSet holds");
  for (size_t i = 0; i < allOps().size(); ++i)
    if (allOps()[i]->kind == kind) set.set(i);
  return set;
}

OpSet allNodes() {
  return opsOf(OpKind::Elementwise) | opsOf(OpKind::Core) | opsOf(OpKind::View) | opsOf(OpKind::Target) |
         opsOf(OpKind::Composite);
}

}  // namespace pattern

bool isCommutative(Op op) {
  static const std::vector<bool> table = [] {
    const auto symmetric = [](Scalar s) {
      return s == Scalar::Add || s == Scalar::Mul || s == Scalar::Min || s == Scalar::Max || s == Scalar::And ||
             s == Scalar::Or || s == Scalar::Xor || s == Scalar::Eq;
    };
    std::vector<bool> rows;
    for (const OpDef* def : allOps()) {
      const Formula& f = def->scalar;
      rows.push_back(f.size() == 3 && f[0].op == Scalar::Arg && f[1].op == Scalar::Arg && symmetric(f[2].op) &&
                     def->in[0].typeVar == def->in[1].typeVar);
    }
    return rows;
  }();
  return table[static_cast<size_t>(op)];
}

std::optional<double> splatValue(Value v) {
  if (!v) return std::nullopt;
  if (v.node->op() == Op::Splat) return v.node->attrs().real("value");
  const Constant* constant = asConstant(v);
  if (constant == nullptr || isQuantized(v.kind()) || !constant->tensor().isSplat()) return std::nullopt;
  const Tensor& t = constant->tensor();
  const Tensor first(Type(t.type().kind(), {}), t.data(), std::shared_ptr<const void>(t.data(), [](const void*) {}));
  const double value = first.doubles().front();
  // Integers that a double cannot tell apart are not safe to reason with.
  if (isInteger(v.kind()) && std::abs(value) >= 0x1p53) return std::nullopt;
  return value;
}

bool nearlyEqual(ElemKind kind, double a, double b) {
  if (a == b) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  // A few units of the last place of the kinds that model files carry such numbers in.
  const double relative = kind == ElemKind::Float64 || kind == ElemKind::Float32 ? 4e-6
                          : kind == ElemKind::Float16                            ? 2e-3
                          : isFloat(kind)                                        ? 1e-2
                                                                                 : 0;
  return std::abs(a - b) <= relative * std::max(std::abs(a), std::abs(b));
}

bool Captures::bind(int capture, Value value) {
  if (capture < 0) return true;
  Value& place = values_[static_cast<size_t>(capture)];
  if (place) return place == value;
  place = value;
  return true;
}

namespace {

class Matcher {
public:
  Matcher(Node& root, const std::function<bool(const Captures&)>& accept) : root_(root), accept_(accept) {}

  struct Goal {
    const Pattern* pattern = nullptr;
    Value value;
    const Goal* next = nullptr;
  };

  // Reaches this goal and all after it, or leaves the captures as they were.
  bool solve(const Goal* goal) {
    if (goal == nullptr) return accept_(captures_);
    const Captures before = captures_;
    if (fits(*goal->pattern, goal->value) && descend(*goal)) return true;
    captures_ = before;
    return false;
  }

private:
  bool fits(const Pattern& pattern, Value v) {
    if (pattern.kind == Pattern::Kind::Absent) return !v;
    if (pattern.kind == Pattern::Kind::Either) return true;
    if (!v || !captures_.bind(pattern.capture, v)) return false;
    switch (pattern.kind) {
      case Pattern::Kind::Any:
      case Pattern::Kind::Either:
      case Pattern::Kind::Absent:
        return true;
      case Pattern::Kind::Constant:
        return isConstant(v);
      case Pattern::Kind::Number: {
        const std::optional<double> found = splatValue(v);
        return found && (!pattern.number || *found == *pattern.number);
      }
      case Pattern::Kind::Node:
        break;
    }
    const Node& node = *v.node;
    if (!pattern.ops.test(static_cast<size_t>(node.op())) || v.index != 0) return false;
    if (&node != &root_ && node.predicate() && node.predicate() != root_.predicate()) return false;
    return !pattern.usedOnce || node.uses().size() == 1;
  }

  bool descend(const Goal& goal) {
    const std::vector<Pattern>& children = goal.pattern->children;
    if (goal.pattern->kind == Pattern::Kind::Either) {
      for (const Pattern& alternative : children) {
        const Goal attempt{&alternative, goal.value, goal.next};
        if (solve(&attempt)) return true;
      }
      return false;
    }
    if (children.empty()) return solve(goal.next);
    const Node& node = *goal.value.node;
    std::array<Goal, 10> goals;
    const size_t count = children.size();
    AGLOW_CHECK(count <= goals.size(), "a pattern names too many operands");
    for (size_t i = 0; i < count; ++i)
      goals[i] = {&children[i], node.input(static_cast<int>(i)), i + 1 < count ? &goals[i + 1] : goal.next};
    if (solve(goals.data())) return true;
    if (count != 2 || !isCommutative(node.op())) return false;
    std::swap(goals[0].value, goals[1].value);
    return solve(goals.data());
  }

  Node& root_;
  const std::function<bool(const Captures&)>& accept_;
  Captures captures_;
};

}  // namespace

bool match(const Pattern& pattern, Node& root, const std::function<bool(const Captures&)>& accept) {
  const Matcher::Goal goal{&pattern, root.result(), nullptr};
  return Matcher(root, accept).solve(&goal);
}

}  // namespace aglow
