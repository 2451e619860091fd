// Functions that write what they read, in the form that passes may rely on.
#pragma once

#include "graph/module.h"

namespace aglow {

// Afterwards every node that reads a placeholder reads what it held when the run began: reads after a Save take the
// saved value itself, and Saves of what is read stand last. Passes may then move and replace nodes without a look at
// the Saves. The function computes the same.
void settleSaves(Function& function);

}  // namespace aglow
