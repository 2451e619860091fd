// Fusion: chains of instructions become one fused instruction each, so that what the one computes the next
// one finds in registers instead of memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fuse/policy.h"
#include "inst/program.h"

namespace aglow {

// Reports whether anything was fused. What is fused with an anchor runs by its plan; other fused instructions have
// none. The results stay the same to the bit; placement is forgotten.
Result<bool> fuseInstructions(Program& program, const FusePolicy& policy);

// Which nodes run as one: decided in a program, and followed in the programs of its parts.
struct FusedNodes {
  std::map<std::string, int32_t, std::less<>> instrOf;  // by node: the number of the fused instruction it is in
};
FusedNodes fusedNodesOf(const Program& program);
// Fuses what the nodes say and nothing else. Those of one instruction are all there or none of them, one after the
// other.
Result<bool> fuseAs(Program& program, const FusedNodes& nodes);

// Takes all that can be fused; for running fused programs where no generated code sets limits.
const FusePolicy& fuseEverything();

}  // namespace aglow
