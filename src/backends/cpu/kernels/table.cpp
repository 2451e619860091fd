#include "backends/cpu/kernels/table.h"

namespace aglow::cpu {

namespace {

const KernelRow* find(const Problem& problem, const Machine& machine, Decision& decision) {
  for (const std::span<const KernelRow> rows :
       {gemmRows(), convRows(), attentionRows(), recurrentRows(), genericRows()})
    for (const KernelRow& row : rows)
      if (row.op == opOf(problem.attrs.op()) && (decision = row.applies(problem, machine))) return &row;
  return nullptr;
}

}  // namespace

const KernelRow* findKernel(const Problem& problem, const Machine& machine) {
  Decision decision = Decision::yes();
  return find(problem, machine, decision);
}

Decision servesKernel(const Problem& problem, const Machine& machine) {
  Decision decision = Decision::no("no kernel computes it whole");
  find(problem, machine, decision);
  return decision;
}

KernelPlan planKernel(const Problem& problem, const Machine& machine) {
  const KernelRow* row = findKernel(problem, machine);
  AGLOW_CHECK(row != nullptr, "no kernel for " + std::string(problem.attrs.op().name));
  return row->plan(problem, machine);
}

}  // namespace aglow::cpu
