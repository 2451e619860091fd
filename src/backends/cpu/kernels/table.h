// The kernel table: which kernel of the CPU library does an instruction.
#pragma once

#include "backends/cpu/kernels/plan.h"
#include "inst/plan.h"

namespace aglow::cpu {

// The first row that applies, and what those before it said; no row where none does.
struct KernelChoice {
  const KernelRow* row = nullptr;
  std::vector<Refusal> refused = {};

  // Why there is none: what the last row said.
  std::string reason() const { return refused.empty() ? "no kernel computes it whole" : refused.back().reason; }
};
KernelChoice chooseKernel(const Problem& problem, const Machine& machine);

// By its name, as chosen before; null where there is none.
const KernelRow* findKernel(Op op, std::string_view name);

}  // namespace aglow::cpu
