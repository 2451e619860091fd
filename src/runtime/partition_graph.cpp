#include "runtime/partition_graph.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "ops/work.h"

namespace aglow {

namespace {

class Unions {
public:
  explicit Unions(size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), size_t{0}); }
  size_t find(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parents_[find(a)] = find(b); }

private:
  std::vector<size_t> parents_;
};

std::vector<Value> operandsOf(const Node& node) {
  std::vector<Value> values;
  for (const Value value : node.inputs())
    if (value) values.push_back(value);
  if (node.predicate()) values.push_back(node.predicate());
  return values;
}

// A time that was measured for a node is that of all that became of it: the first has it, and the others take none.
std::map<const Node*, double> timesOf(const std::vector<const Node*>& nodes,
                                      const std::map<std::string, double>& measured) {
  std::map<const Node*, double> times;
  std::set<std::string_view> taken;
  for (const Node* node : nodes)
    if (const auto found = findNode(measured, node->name()); found != measured.end())
      times[node] = taken.insert(found->first).second ? found->second : 0;
  return times;
}

void addCost(PartitionUnit& unit, const Node& node, const std::map<const Node*, double>& measured) {
  std::vector<const Type*> in;
  double bytes = 0;
  for (const Value value : node.inputs()) {
    in.push_back(value ? &value.type() : nullptr);
    if (value) bytes += static_cast<double>(value.type().bytes());
  }
  for (const Type& type : node.types()) bytes += static_cast<double>(type.bytes());
  const double flops = node.op() == Op::Save || node.types().empty() ? 0 : flopsOf(node.attrs(), in, node.type());
  unit.flops += flops;
  const auto known = measured.find(&node);
  unit.microseconds += known == measured.end() ? roughTime(flops, bytes) : known->second;
}

using Numbers = std::map<const Node*, size_t>;

// By group (the number of its root): groups that it reads from, in both directions.
struct Edges {
  std::vector<std::set<size_t>> before, after;
};
Edges edgesOf(const std::vector<const Node*>& nodes, const Numbers& numbers, Unions& unions) {
  Edges edges{std::vector<std::set<size_t>>(nodes.size()), std::vector<std::set<size_t>>(nodes.size())};
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const Value value : operandsOf(*nodes[i])) {
      if (!numbers.contains(value.node)) continue;
      const size_t from = unions.find(numbers.at(value.node)), to = unions.find(i);
      if (from == to) continue;
      edges.before[to].insert(from);
      edges.after[from].insert(to);
    }
  return edges;
}

// Which groups are left when those are taken away, one after the other, that nothing left leads to.
std::vector<bool> leftOver(const std::vector<std::set<size_t>>& before, const std::vector<std::set<size_t>>& after,
                           std::vector<bool> left) {
  std::vector<size_t> missing(before.size()), todo;
  for (size_t i = 0; i < before.size(); ++i) {
    missing[i] =
        static_cast<size_t>(std::count_if(before[i].begin(), before[i].end(), [&](size_t b) { return left[b]; }));
    if (left[i] && missing[i] == 0) todo.push_back(i);
  }
  while (!todo.empty()) {
    const size_t group = todo.back();
    todo.pop_back();
    left[group] = false;
    for (const size_t next : after[group])
      if (left[next] && --missing[next] == 0) todo.push_back(next);
  }
  return left;
}

// Joining nodes may lead round in circles through others: what is on a circle, or between two, becomes one group.
void joinCircles(const std::vector<const Node*>& nodes, const Numbers& numbers, Unions& unions) {
  const Edges edges = edgesOf(nodes, numbers, unions);
  std::vector<bool> left(nodes.size(), false);
  for (size_t i = 0; i < nodes.size(); ++i) left[unions.find(i)] = true;
  left = leftOver(edges.after, edges.before, leftOver(edges.before, edges.after, std::move(left)));
  size_t first = nodes.size();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!left[i]) continue;
    if (first == nodes.size())
      first = i;
    else
      unions.join(i, first);
  }
}

// The number of each node's unit: units are numbered so that each comes after those it reads, and otherwise as in the
// function.
std::vector<size_t> orderUnits(const std::vector<const Node*>& nodes, const Numbers& numbers, Unions& unions) {
  const Edges edges = edgesOf(nodes, numbers, unions);
  std::vector<size_t> first(nodes.size(), nodes.size()), missing(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) first[unions.find(i)] = i;
  std::set<std::pair<size_t, size_t>> ready;  // by the first node
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (unions.find(i) != i) continue;
    missing[i] = edges.before[i].size();
    if (missing[i] == 0) ready.insert({first[i], i});
  }
  std::map<size_t, size_t> unitOf;
  while (!ready.empty()) {
    const size_t group = ready.begin()->second;
    ready.erase(ready.begin());
    unitOf.emplace(group, unitOf.size());
    for (const size_t next : edges.after[group])
      if (--missing[next] == 0) ready.insert({first[next], next});
  }
  std::vector<size_t> place(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) place[i] = unitOf.at(unions.find(i));
  return place;
}

std::set<const Node*> carriedNodes(const Function& function) {
  std::set<const Node*> carried;
  for (const auto& node : function.nodes()) {
    const std::vector<Value> operands = operandsOf(*node);
    const bool fixed = node->op() != Op::Save && !operands.empty() &&
                       std::all_of(operands.begin(), operands.end(),
                                   [&](Value value) { return isConstant(value) || carried.contains(value.node); });
    if (fixed) carried.insert(node.get());
  }
  return carried;
}

}  // namespace

PartitionGraph partitionGraphOf(const Function& function, const std::map<std::string, double>& measured,
                                const FusedNodes* fused) {
  PartitionGraph graph;
  if (fused == nullptr) graph.carried = carriedNodes(function);
  std::vector<const Node*> nodes;
  std::map<const Node*, size_t> numbers;
  for (const auto& node : function.nodes()) {
    if (graph.carried.contains(node.get())) continue;
    numbers[node.get()] = nodes.size();
    nodes.push_back(node.get());
  }
  // What must stay together: what runs as one, all that touches storage which a run changes, and Saves with what they
  // save.
  Unions unions(nodes.size());
  if (fused != nullptr) {
    std::map<int32_t, size_t> firstOf;  // by fused instruction
    for (size_t i = 0; i < nodes.size(); ++i)
      if (const auto found = fused->instrOf.find(nodes[i]->name()); found != fused->instrOf.end())
        unions.join(i, firstOf.try_emplace(found->second, i).first->second);
  }
  std::set<const Node*> written;
  for (const Node* node : nodes)
    if (node->op() == Op::Save) {
      const Value saved = node->input(0), target = node->input(1);
      written.insert(target.node);
      if (numbers.contains(saved.node)) unions.join(numbers[node], numbers[saved.node]);
    } else {
      for (const Value value : operandsOf(*node))
        if (const Placeholder* place = asPlaceholder(value); place != nullptr && place->isState())
          written.insert(place);
    }
  std::map<const Node*, size_t> touching;
  for (const Node* node : nodes)
    for (const Value value : operandsOf(*node))
      if (written.contains(value.node)) {
        const auto [first, isNew] = touching.try_emplace(value.node, numbers[node]);
        if (!isNew) unions.join(numbers[node], first->second);
      }
  joinCircles(nodes, numbers, unions);
  const std::vector<size_t> place = orderUnits(nodes, numbers, unions);
  graph.units.resize(nodes.empty() ? 0 : *std::max_element(place.begin(), place.end()) + 1);
  for (size_t i = 0; i < nodes.size(); ++i) graph.units[place[i]].nodes.push_back(nodes[i]);
  std::map<const Node*, size_t> constants;
  const std::function<void(Value, PartitionUnit&)> addConstants = [&](Value value, PartitionUnit& unit) {
    if (graph.carried.contains(value.node)) {
      for (const Value operand : operandsOf(*value.node)) addConstants(operand, unit);
    } else if (const Constant* constant = asConstant(value)) {
      const auto [number, isNew] = constants.try_emplace(constant, graph.constantBytes.size());
      if (isNew) graph.constantBytes.push_back(constant->type().bytes());
      unit.constants.push_back(number->second);
    }
  };
  const std::map<const Node*, double> times = timesOf(nodes, measured);
  std::map<std::pair<const Node*, int>, size_t> values;
  graph.valuesOf.resize(graph.units.size());
  graph.readsOf.resize(graph.units.size());
  graph.resultBytes.resize(graph.units.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    PartitionUnit& unit = graph.units[place[i]];
    graph.unitOf[nodes[i]] = place[i];
    addCost(unit, *nodes[i], times);
    for (const Type& type : nodes[i]->types())
      if (nodes[i]->op() != Op::Save) graph.resultBytes[place[i]] += type.bytes();
    for (const Value value : operandsOf(*nodes[i])) {
      addConstants(value, unit);
      if (!numbers.contains(value.node)) continue;
      const size_t maker = place[numbers[value.node]];
      if (maker == place[i]) continue;
      const auto [number, isNew] = values.try_emplace({value.node, value.index}, graph.values.size());
      if (isNew) {
        graph.values.push_back({.maker = maker, .readers = {}, .bytes = value.type().bytes()});
        graph.valuesOf[maker].push_back(number->second);
      }
      std::vector<size_t>& readers = graph.values[number->second].readers;
      if (std::find(readers.begin(), readers.end(), place[i]) == readers.end()) {
        readers.push_back(place[i]);
        graph.readsOf[place[i]].push_back(number->second);
      }
    }
  }
  for (PartitionUnit& unit : graph.units) {
    std::sort(unit.constants.begin(), unit.constants.end());
    unit.constants.erase(std::unique(unit.constants.begin(), unit.constants.end()), unit.constants.end());
  }
  return graph;
}

std::vector<PartEstimate> estimateParts(const PartitionGraph& graph, const std::vector<size_t>& labels, size_t parts) {
  std::vector<PartEstimate> estimates(parts);
  std::vector<std::set<size_t>> constants(parts);
  // Live bytes are followed through the order: a value lives, in each part that has it, from where it is made or comes
  // in up to its last reader there, and to the end where others read it.
  std::vector<int64_t> live(parts, 0);
  std::vector<std::vector<std::pair<size_t, int64_t>>> deaths(graph.units.size());  // after a unit: part and bytes
  for (const PartitionValue& value : graph.values) {
    std::map<size_t, size_t> last;  // by part: the last reader
    for (const size_t reader : value.readers) {
      size_t& unit = last.try_emplace(labels[reader], reader).first->second;
      unit = std::max(unit, reader);
    }
    const size_t home = labels[value.maker];
    bool leaves = false;
    for (const auto& [part, unit] : last)
      if (part == home) {
        deaths[unit].emplace_back(part, value.bytes);
      } else {
        leaves = true;
        estimates[part].inBytes += value.bytes;
        live[part] += value.bytes;  // the caller's memory, there from the start
      }
    if (leaves) estimates[home].outBytes += value.bytes;
  }
  std::vector<int64_t> peak = live;
  for (size_t i = 0; i < graph.units.size(); ++i) {
    const size_t part = labels[i];
    PartEstimate& estimate = estimates[part];
    estimate.flops += graph.units[i].flops;
    estimate.microseconds += graph.units[i].microseconds;
    for (const size_t constant : graph.units[i].constants)
      if (constants[part].insert(constant).second) estimate.constantBytes += graph.constantBytes[constant];
    live[part] += graph.resultBytes[i];
    peak[part] = std::max(peak[part], live[part]);
    for (const auto& [home, bytes] : deaths[i]) live[home] -= bytes;
    // Results that nobody reads, or that stay within the unit, are gone after it; outputs of the network stay.
    int64_t kept = 0;
    for (const size_t value : graph.valuesOf[i]) kept += graph.values[value].bytes;
    const bool saves = std::any_of(graph.units[i].nodes.begin(), graph.units[i].nodes.end(),
                                   [](const Node* node) { return node->op() == Op::Save; });
    if (!saves) live[part] -= std::max<int64_t>(graph.resultBytes[i] - kept, 0);
  }
  for (size_t part = 0; part < parts; ++part) estimates[part].arenaBytes = peak[part];
  return estimates;
}

}  // namespace aglow
