#include "quant/islands.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "graph/lexer.h"
#include "graph/op_views.h"
#include "quant/conversions.h"
#include "support/hash.h"

namespace aglow::quant {

namespace {

bool isFloat32(Value v) { return v && v.kind() == ElemKind::Float32; }

bool hasWeights(const Node& node) { return isConstant(node.input(1)) && isFloat32(node.input(1)); }
bool isMatrix(const Node& node) { return hasWeights(node) && node.input(1).rank() == 2; }
bool always(const Node&) { return true; }
bool isMean(const Node& node) { return node.attrs().word("kind") == "mean"; }
bool hasNoConstants(const Node& node) {
  const std::vector<Value> inputs = node.inputs();
  return std::none_of(inputs.begin(), inputs.end(), isConstant);
}
// Operands that are computed, each of its own.
bool isPair(const Node& node) {
  return isFloat32(node.input(0)) && isFloat32(node.input(1)) && !isConstant(node.input(0)) &&
         !isConstant(node.input(1));
}
bool isAttention(const Node& node) {
  return isPair(node) && !isConstant(node.input(2)) && node.attrs().real("softcap") == 0 &&
         node.attrs().elem("precision") == ElemKind::Float32;
}
bool isBias(const Node& node) { return isConstant(node.input(0)) != isConstant(node.input(1)); }
bool padsZeros(const Node& node) {
  const Constant* value = asConstant(node.input(1));
  return value != nullptr && value->tensor().doubles() == std::vector<double>{0};
}
bool takesNearest(const Node& node) { return node.attrs().word("mode") == "nearest"; }
bool isVariable(const Node& node) { return !isConstant(node.input(0)); }
// Smaller ones take no room worth a conversion. Where something else reads the constant too, it is kept anyway.
bool readsTable(const Node& node) {
  constexpr int64_t kSmall = int64_t{32} << 10;  // elements
  const Value data = node.input(0);
  const auto& uses = data.node->uses();
  return isConstant(data) && isFloat32(data) && data.rank() > 1 && data.type().elements() > kSmall &&
         std::all_of(uses.begin(), uses.end(),
                     [](const Use& use) { return use.user->op() == Op::Gather && use.slot == 0; });
}

constexpr int kAll = INT_MAX;

struct Row {
  Op op;
  Role role;
  bool (*applies)(const Node& node);
  int operands = 1;  // so many of the first ones are computed with
};

// The first row that applies counts.
constexpr Row kRows[] = {
    {Op::Conv, Role::Product, hasWeights},
    {Op::MatMul, Role::Product, isMatrix},
    {Op::MatMul, Role::Pair, isPair, kAll},
    {Op::Attention, Role::Pair, isAttention, 3},
    {Op::Add, Role::After, isBias, kAll},
    {Op::Add, Role::Compute, hasNoConstants, kAll},
    {Op::Max, Role::Compute, hasNoConstants, kAll},
    {Op::Min, Role::Compute, hasNoConstants, kAll},
    {Op::AvgPool, Role::Compute, always},
    {Op::Reduce, Role::Compute, isMean},
    {Op::Relu, Role::After, always},
    {Op::Clip, Role::After, always},
    {Op::MaxPool, Role::Carry, always},
    {Op::Reshape, Role::Carry, isVariable},
    {Op::Transpose, Role::Carry, isVariable},
    {Op::Slice, Role::Carry, isVariable},
    {Op::Gather, Role::Carry, isVariable},
    {Op::Gather, Role::Table, readsTable, 0},
    {Op::Pad, Role::Carry, padsZeros},
    {Op::Resize, Role::Carry, takesNearest},
    {Op::Concat, Role::Carry, hasNoConstants, kAll},
};

// Null for operators that stay in floats.
const Row* rowOf(const Node& node) {
  if (node.isStorage() || node.resultCount() == 0 || node.type().kind() != ElemKind::Float32) return nullptr;
  for (int i = 1; i < node.resultCount(); ++i)
    if (node.useCount(i) > 0) return nullptr;
  const auto found = std::find_if(std::begin(kRows), std::end(kRows),
                                  [&](const Row& row) { return row.op == node.op() && row.applies(node); });
  return found == std::end(kRows) ? nullptr : found;
}

// Numbers of groups, which join.
class Groups {
public:
  size_t of(Value v) {
    const auto [it, isNew] = number_.try_emplace(v, parent_.size());
    if (isNew) parent_.push_back(parent_.size());
    return root(it->second);
  }
  void join(Value a, Value b) {
    const size_t one = of(a), other = of(b);
    parent_[std::max(one, other)] = std::min(one, other);
  }

private:
  size_t root(size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  std::unordered_map<Value, size_t, ValueHash> number_;
  std::vector<size_t> parent_;
};

// The nodes whose results leave them through arithmetic, which can give integers of any scale.
std::unordered_set<const Node*> computingNodes(const Function& function) {
  std::unordered_set<const Node*> computing;
  for (const auto& node : function.nodes()) {
    const Role role = roleOf(*node);
    const bool follows =
        role == Role::After && computing.contains(node->input(isConstant(node->input(0)) ? 1 : 0).node);
    if (follows || role == Role::Product || role == Role::Pair || role == Role::Compute) computing.insert(node.get());
  }
  return computing;
}

}  // namespace

Role roleOf(const Node& node) {
  const Row* row = rowOf(node);
  return row == nullptr ? Role::Float : row->role;
}

int dataOperands(const Node& node) {
  const Row* row = rowOf(node);
  return row == nullptr ? 0 : std::min(row->operands, node.inputCount());
}

std::vector<std::string_view> quantizedOperators() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows)
    if (const std::string_view name = opDef(row.op).name; names.empty() || names.back() != name) names.push_back(name);
  return names;
}

std::string nameOf(Value value) {
  if (value.node->isStorage()) return printName("@", value.node->name());
  return printName("%", value.node->name()) + (value.index == 0 ? "" : fmt::format(":{}", value.index));
}

const Node* Islands::computedWith(const Node& node) const {
  const auto it = after.find(&node);
  return it == after.end() ? nullptr : it->second;
}

namespace {

// From the end to the beginning: whoever takes a value has been asked before the node that gives it. A value is wanted
// where it is taken as integers; its node takes part in an island then, and also where what is computed with it does.
Islands islandsOf(const Function& function, const std::set<std::string>& kept,
                  const std::unordered_set<const Node*>& floats) {
  Islands islands;
  Groups groups;
  std::unordered_set<Value, ValueHash> wanted;
  std::unordered_set<const Node*> takesPart;
  const std::unordered_set<const Node*> computing = computingNodes(function);
  for (auto it = function.nodes().rbegin(); it != function.nodes().rend(); ++it) {
    Node& node = **it;
    const Role role = roleOf(node);
    if (role == Role::Float || floats.contains(&node) || kept.contains(node.name()) ||
        kept.contains(std::string(node.def().name)))
      continue;
    if (role == Role::Table) {
      islands.tables.push_back(&node);
      continue;
    }
    if (role == Role::Product)
      islands.products.push_back(&node);
    else if (role == Role::Pair)
      islands.pairs.push_back(&node);
    else if (!wanted.contains(node.result()) && !takesPart.contains(&node))
      continue;
    islands.members.insert(&node);
    for (int i = 0; i < dataOperands(node); ++i) {
      const Value operand = node.input(i);
      if (!isFloat32(operand) || isConstant(operand)) continue;
      if (role == Role::After && (computing.contains(operand.node) || node.op() == Op::Add)) {
        takesPart.insert(operand.node);
        islands.after[&node] = operand.node;
        continue;
      }
      wanted.insert(operand);
      if (role == Role::Carry) groups.join(operand, node.result());
    }
  }
  std::reverse(islands.products.begin(), islands.products.end());
  std::reverse(islands.pairs.begin(), islands.pairs.end());
  std::reverse(islands.tables.begin(), islands.tables.end());
  const auto add = [&](Value v) {
    if (!wanted.contains(v)) return;
    islands.values.push_back(v);
    islands.group[v] = groups.of(v);
  };
  for (const auto& storage : function.module().storage()) add(storage->result());
  for (const auto& node : function.nodes())
    for (int i = 0; i < node->resultCount(); ++i) add(node->result(i));
  return islands;
}

}  // namespace

Islands possibleIslands(const Function& function, const std::set<std::string>& kept) {
  return islandsOf(function, kept, {});
}

Islands findIslands(const Function& function, const std::set<std::string>& kept) {
  Islands possible = possibleIslands(function, kept);
  const std::unordered_set<const Node*> floats = cheaperInFloats(function, possible);
  return floats.empty() ? std::move(possible) : islandsOf(function, kept, floats);
}

uint64_t fingerprintOf(const Function& function) {
  uint64_t hash = 0;
  const auto mix = [&](std::string_view text) { hash = hashBytes(text.data(), text.size(), hash); };
  for (const Node* node : possibleIslands(function).products) {
    mix(node->def().name);
    mix(node->name());
    hash = mixHash(hash, asConstant(node->input(1))->tensor().hash());
  }
  return hash;
}

}  // namespace aglow::quant
