// A part of a model: what was compiled for the types and values it met, and what is to be run after it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "import/onnx/parts.h"
#include "runtime/network.h"

namespace aglow {

// Nodes of a graph that are still to be run, and whose values shapes among them depend on.
struct PendingNodes;

struct Part {
  std::unique_ptr<Network> network;  // none where there is nothing to compute
  onnx::KnownValues constants;       // values that need no run
  onnx::KnownValues held;            // constants that the code depends on: kept alive, because keys hold addresses
  std::vector<size_t> alone;         // nodes to be run after it, each by itself
  PendingNodes* next = nullptr;      // none: the graph is done
  std::vector<std::string> freeze;   // nothing was made: the values of these decide
};

}  // namespace aglow
