// Operator stacking: chains of instructions become one fused instruction each, so that what the one computes the next
// one finds in registers instead of memory.
#pragma once

#include "inst/program.h"
#include "stack/policy.h"

namespace aglow {

// Reports whether anything was fused. The results stay the same to the bit; placement is forgotten.
Result<bool> stackInstructions(Program& program, const StackPolicy& policy);

// Takes all that can be fused; for running stacked programs where no generated code sets limits.
const StackPolicy& stackEverything();

}  // namespace aglow
