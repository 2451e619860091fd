// Whether instructions that were fused for one backend may stay so for another.
#pragma once

#include <vector>

#include "fuse/policy.h"
#include "inst/fused.h"

namespace aglow {

// Bytes of one row of those values that a body with reductions computes in one pass over the row and reads in a later
// one.
int64_t keptBytes(const Program& program, const BodyForm& form, BodySteps steps);

// Takes fused instructions apart that the policy would not have made; what they kept to themselves gets memory. Whether
// there were any; if so, placement is forgotten.
bool takeApart(Program& program, const FusePolicy& policy);

}  // namespace aglow
