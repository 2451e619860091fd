// What plans of pools share.
#pragma once

#include "backends/cpu/kernels/plan.h"
#include "backends/cpu/kernels/pool/cpu_desc.h"

namespace aglow::cpu::generic {

// All but what only one kind of pool needs. The result has elements.
PoolDesc poolDesc(const Problem& problem);

}  // namespace aglow::cpu::generic
