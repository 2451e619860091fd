// A partition's module: a function for each part, and placeholders for the values between them.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition.h"
#include "runtime/partition_graph.h"

namespace aglow {

// `labels` are those of the units, never falling along a value; `devices` are by label, and may be empty. Parts have to
// go there where they are pinned. Labels that no unit has make no part.
Result<Partition> buildPartition(const Function& whole, const Interface& interface, const PartitionGraph& graph,
                                 std::vector<size_t> labels, std::vector<std::string> devices, bool pinned,
                                 std::vector<std::string> calledOut);

// A module of one function alone, which shares constants with the one it is taken from.
std::unique_ptr<Module> moduleOf(const Function& function);

}  // namespace aglow
