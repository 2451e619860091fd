// A function in the order in which it runs compiled whole, with what runs there as one.
#pragma once

#include <memory>

#include "compile/compile.h"
#include "fuse/fuse.h"
#include "graph/module.h"

namespace aglow {

struct WholeFunction {
  std::unique_ptr<Module> module;  // of this function alone
  std::shared_ptr<const FusedNodes> fusedNodes;
};

// The function has come as far as its graph goes. Its nodes are put in order, and what runs as one stands together.
Status putInOrder(WholeFunction& whole, const CompileOptions& options);

}  // namespace aglow
