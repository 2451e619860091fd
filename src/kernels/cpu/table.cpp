#include "kernels/cpu/table.h"

namespace aglow::cpu {

const KernelRow* findKernel(const Problem& problem, const Machine& machine) {
  for (const std::span<const KernelRow> rows : {gemmRows(), convRows(), genericRows()})
    for (const KernelRow& row : rows)
      if (row.op == opOf(problem.attrs.op()) && row.applies(problem, machine)) return &row;
  return nullptr;
}

KernelPlan planKernel(const Problem& problem, const Machine& machine) {
  const KernelRow* row = findKernel(problem, machine);
  AGLOW_CHECK(row != nullptr, "no kernel for " + std::string(problem.attrs.op().name));
  return row->plan(problem, machine);
}

}  // namespace aglow::cpu
