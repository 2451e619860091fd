// Small trees of operators with captures, in which rules say what they look for, and the matching of one against the
// graph.
#pragma once

#include <array>
#include <bitset>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "graph/node.h"

namespace aglow {

using OpSet = std::bitset<256>;

// One tree. Operands are matched from the first on; a node may have more of them than the pattern names. Operators
// whose formula is commutative are tried both ways round, and every way that fits the tree is offered to the rule's
// condition.
class Pattern {
public:
  enum class Kind : uint8_t { Any, Constant, Number, Absent, Node, Either };

  Kind kind = Kind::Any;
  int capture = -1;
  bool usedOnce = false;         // Node: nobody else reads its results
  OpSet ops;                     // Node
  std::optional<double> number;  // Number: the value wanted
  std::vector<Pattern> children;

  // The same pattern, remembered under a number.
  Pattern as(int captured) &&;
  // The same pattern, for a node whose only user is the one above it.
  Pattern once() &&;
};

namespace pattern {

// Anything. A number that occurs twice stands for the same value.
Pattern any(int capture);
// A Constant.
Pattern constant(int capture);
// The same number at every element: a Constant, or a Splat.
Pattern number(int capture);
// As number(), of this very value.
Pattern literal(double value);
// An optional operand that is not there.
Pattern absent();
// A node of an operator, or of one of several.
Pattern op(Op op, std::initializer_list<Pattern> operands = {});
Pattern op(const OpSet& ops, std::initializer_list<Pattern> operands = {});
// The first alternative that fits.
Pattern either(std::initializer_list<Pattern> alternatives);

OpSet opSet(std::initializer_list<Op> ops);
// Operators of a kind, as the records say.
OpSet opsOf(OpKind kind);
OpSet allNodes();  // all but storage

}  // namespace pattern

// Whether the formula gives the same for swapped operands.
bool isCommutative(Op op);

// The number that stands at every element of a Constant or Splat, if there is one.
std::optional<double> splatValue(Value v);
// Whether two numbers are the same but for the rounding of an element kind.
bool nearlyEqual(ElemKind kind, double a, double b);

// What a pattern found.
class Captures {
public:
  static constexpr int kMax = 12;

  Value operator[](int capture) const { return values_[static_cast<size_t>(capture)]; }
  // Takes a value, or says that another one stands there already.
  bool bind(int capture, Value value);

private:
  std::array<Value, kMax> values_{};
};

// Finds the pattern at a node, and asks accept() about each way until it agrees. All nodes of the tree must have the
// root's predicate or none.
bool match(const Pattern& pattern, Node& root, const std::function<bool(const Captures&)>& accept);

}  // namespace aglow
