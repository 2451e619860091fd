// The order of a function's nodes that keeps the peak of memory low.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/module.h"

namespace aglow {

struct Schedule {
  std::vector<const Node*> order;  // every node once, each after its operands
  int64_t peak = 0;                // estimate of the bytes alive at most
  int64_t givenPeak = 0;           // the same for the function's own order; never less than peak
  std::string_view strategy;       // where the order comes from
};

// Compares several orders by their peak and keeps the best. Reads and writes of one placeholder keep their order. The
// same function always gets the same order; time grows with n log n.
Schedule scheduleNodes(const Function& function);

// The estimate for one order. Views cost nothing, in-place operators reuse a dying operand, and what is saved lies in
// its placeholder.
int64_t peakBytes(const Function& function, std::span<const Node* const> order);

}  // namespace aglow
