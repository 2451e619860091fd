// Which values of a graph become integers: those that operators of a table take and give, so that convolutions and
// products, and what stands between them, form islands without floats.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/module.h"

namespace aglow::quant {

// What an operator does with integers.
enum class Role : uint8_t {
  Float,    // it stays as it is
  Product,  // takes an operand as integers, times constant weights
  Pair,     // takes all its operands as integers and multiplies them by each other
  Compute,  // takes and gives integers of their own scales, where its result is wanted as integers
  Carry,    // moves integers as they are: operands and result have one scale
  After,    // is computed with the result of the node before it, which then needs no integers of its own
  Table,    // reads slices of a large constant, which is kept as integers; what it gives is floats
};
Role roleOf(const Node& node);
// How many operands hold what is computed with: sizes, bounds and indices come after them.
int dataOperands(const Node& node);
// Names of the operators that may become integer ones, for messages.
std::vector<std::string_view> quantizedOperators();

// How the graph's text names a value: "%conv", "%split:1", "@image".
std::string nameOf(Value value);

struct ValueHash {
  size_t operator()(const Value& v) const { return std::hash<const void*>()(v.node) ^ static_cast<size_t>(v.index); }
};

struct Islands {
  std::vector<Value> values;                           // that become integers, in the order of the function
  std::unordered_map<Value, size_t, ValueHash> group;  // by value: those of one number have one scale
  std::vector<Node*> products;                         // whose weights become integers too
  std::vector<Node*> pairs;                            // that multiply computed operands
  std::vector<Node*> tables;                           // whose constants become integers
  std::unordered_set<const Node*> members;             // nodes that take integers where there are some
  std::unordered_map<const Node*, const Node*> after;  // by node: the one whose result it takes before that is rounded

  const Node* computedWith(const Node& node) const;  // or null
};

// The largest islands there can be: all that profiles are asked about, whatever is chosen later. `kept` names nodes and
// operators that stay in floats; no choice makes islands larger.
Islands possibleIslands(const Function& function, const std::set<std::string>& kept = {});
// Those of them with the fewest bytes to convert.
Islands findIslands(const Function& function, const std::set<std::string>& kept = {});

// A name for the graph that islands are found in: the same for other batch sizes, another for other weights.
uint64_t fingerprintOf(const Function& function);

}  // namespace aglow::quant
