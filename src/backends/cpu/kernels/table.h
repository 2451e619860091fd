// The kernel table: which kernel of the CPU library does an instruction.
#pragma once

#include "backends/cpu/kernels/plan.h"

namespace aglow::cpu {

// The first row that applies; none where the operator has no kernels.
const KernelRow* findKernel(const Problem& problem, const Machine& machine);
// Whether there is one, or what the last row said.
Decision servesKernel(const Problem& problem, const Machine& machine);
// Its plan; internal error where there is none.
KernelPlan planKernel(const Problem& problem, const Machine& machine);

}  // namespace aglow::cpu
