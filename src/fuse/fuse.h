// Fusion: chains of instructions become one fused instruction each, so that what the one computes the next
// one finds in registers instead of memory.
#pragma once

#include "fuse/policy.h"
#include "inst/program.h"

namespace aglow {

// Reports whether anything was fused. What is fused with an anchor runs by its plan; other fused instructions have
// none. The results stay the same to the bit; placement is forgotten.
Result<bool> fuseInstructions(Program& program, const FusePolicy& policy);

// Takes all that can be fused; for running fused programs where no generated code sets limits.
const FusePolicy& fuseEverything();

}  // namespace aglow
