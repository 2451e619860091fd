// Random valid graphs, generic over the records: operand types and attributes are drawn until the operator's type rule
// accepts them. The same seed gives the same graph on every machine.
//
//   Module module;
//   RandomGraph random(module, seed);
//   Function* f = random.addFunction("main", 20);          // a whole graph, every result saved
//   Node* node = random.addNode(*f, opDef(Op::Conv));      // one more node; null when no valid use was found
//   std::optional<OpUse> use = drawUse(rng, op);           // only types and attributes, for tests of kernels
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/module.h"
#include "ops/kind_sets.h"

namespace aglow {

// Numbers that do not depend on the standard library.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits();
  int64_t between(int64_t low, int64_t high);  // both included
  double real(double low, double high);
  bool chance(double probability) { return real(0, 1) < probability; }
  template <class T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(between(0, static_cast<int64_t>(items.size()) - 1))];
  }

private:
  uint64_t state_;
};

// Values between low and high as far as the kind has them; raw values of quantized kinds are any.
Tensor randomTensor(Random& random, const Type& type, double low = -4, double high = 4);

struct RandomOptions {
  KindSet kinds = kinds::any;  // of operands that are made for a node
  int64_t maxElements = 2048;  // of every operand and result
  double constants = 0.3;      // how often a fresh operand is a constant
  double predicates = 0.1;     // how often a node has a predicate
  bool oddNames = false;       // names that need quotes
  bool chains = true;          // operands may be results of earlier nodes
  int tries = 20000;           // until a use of an operator is given up
  // Which operators a graph may have; all by default.
  std::function<bool(const OpDef&)> allowed = {};
};

// A valid use of an operator: an absent operand has no type.
struct OpUse {
  Attrs attrs;
  std::vector<std::optional<Type>> in;
  std::vector<Type> out;
};
// Nothing when `options.tries` draws were refused.
std::optional<OpUse> drawUse(Random& random, const OpDef& op, const RandomOptions& options = {});

// Random nodes in a module. Operands of index kinds are constants inside of every axis, so that the graph also runs.
class RandomGraph {
public:
  RandomGraph(Module& module, uint64_t seed, RandomOptions options = {});

  Random& random() { return random_; }
  // At the end of the function; operands are earlier values of it, or fresh storage.
  Node* addNode(Function& function, const OpDef& op);
  // `nodes` nodes, and a Save for every result that no node uses.
  Function* addFunction(std::string name, int nodes);

private:
  Node* place(Function& function, const OpDef& op, int tries);
  Value fresh(const OperandDef& def, const Type& type, const Shape& data);
  std::string name();

  Module& module_;
  Random random_;
  RandomOptions options_;
};

}  // namespace aglow
