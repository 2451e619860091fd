// The choice between planar and blocked channels for every node.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "backends/cpu/layout/convs.h"

namespace aglow {

struct LayoutChoice {
  std::unordered_map<const Node*, ConvForm> convs;
  std::unordered_set<const Node*> blocked;  // these convolutions, and others that compute on blocks
};

// Convolutions that can have blocks get them; for all other nodes that can, the fewest elements are converted and
// computed in vain.
LayoutChoice chooseLayouts(const Function& function, const Blocks& blocks, const ConvForms& forms);

}  // namespace aglow
