// Work that is shared among processes, and what they counted together.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace aglow::differential {

struct Counts {
  uint64_t graphs = 0, nodes = 0, fails = 0, relaxed = 0, differences = 0;
};

// Each share in a process of its own; a single one in this. Nothing where one has nothing, or died, which is told.
std::optional<Counts> inProcesses(uint64_t jobs, const std::function<std::optional<Counts>(uint64_t job)>& share);

}  // namespace aglow::differential
