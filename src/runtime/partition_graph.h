// A function as the partitioner sees it: units of nodes that stay together, in an order that keeps every unit behind
// those it reads, with their costs, and the values that run between them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fuse/fuse.h"
#include "graph/module.h"

namespace aglow {

// Nodes that belong together: those that run as one, those that touch the same state, and a value with the Saves that
// write it.
struct PartitionUnit {
  std::vector<const Node*> nodes;  // in order
  double flops = 0;
  double microseconds = 0;
  std::vector<size_t> constants;  // numbers of those it reads
};

// A value that units may have to send to others: made by one, read by several.
struct PartitionValue {
  size_t maker = 0;
  std::vector<size_t> readers;  // ascending, never the maker
  int64_t bytes = 0;
};

struct PartitionGraph {
  std::vector<PartitionUnit> units;
  std::vector<PartitionValue> values;
  std::vector<std::vector<size_t>> valuesOf;  // by unit: those it makes
  std::vector<std::vector<size_t>> readsOf;   // by unit: those it reads
  std::vector<int64_t> constantBytes;         // by constant
  std::vector<int64_t> resultBytes;           // by unit: of all it makes
  std::map<const Node*, size_t> unitOf;
  // Where parts decide for themselves what runs as one, nodes that depend on constants alone are in no unit: every part
  // that reads them has its own, so that what a backend makes of weights and their user together, it makes in the part
  // too.
  std::set<const Node*> carried;
};

// What is said of a node: by its name, or by that without the numbers that passes put behind it to tell copies apart.
template <class T>
auto findNode(const std::map<std::string, T>& said, std::string name) {
  while (true) {
    const auto found = said.find(name);
    const size_t end = name.find_last_not_of("0123456789");
    const bool numbered = end != std::string::npos && end + 1 < name.size() && (name[end] == '.' || name[end] == '_');
    if (found != said.end() || !numbered) return found;
    name.resize(end);
  }
}

// `measured` are microseconds by the names of nodes; those of others are estimated. `fused` says which run as one.
PartitionGraph partitionGraphOf(const Function& function, const std::map<std::string, double>& measured = {},
                                const FusedNodes* fused = nullptr);

// What a part needs that consists of some units, given by their labels.
struct PartEstimate {
  double flops = 0, microseconds = 0;
  int64_t constantBytes = 0, arenaBytes = 0;
  int64_t inBytes = 0, outBytes = 0;  // from and to other parts
  int64_t bytes() const { return constantBytes + arenaBytes; }
};
std::vector<PartEstimate> estimateParts(const PartitionGraph& graph, const std::vector<size_t>& labels, size_t parts);

}  // namespace aglow
