// Chains: instructions that the CPU runs part by part, without waiting in between (inst/chain.h).
#pragma once

#include "backends/cpu/kernels/plan.h"
#include "backends/phases.h"
#include "inst/program.h"

namespace aglow {

// Chains instructions of a placed program where that pays for any number of threads, and no more bytes are alive at
// once than before; the program is placed again. Whether there are any.
Result<bool> chainInstructions(Program& program, const cpu::Machine& machine);

// To stand after "memory".
Phase chainPhase(const cpu::Machine& machine);

}  // namespace aglow
