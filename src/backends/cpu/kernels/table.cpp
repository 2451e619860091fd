#include "backends/cpu/kernels/table.h"

namespace aglow::cpu {

namespace {

// The first row of an operator that is accepted.
template <class Accepts>
const KernelRow* firstRow(Op op, const Accepts& accepts) {
  for (const std::span<const KernelRow> rows :
       {gemmRows(), convRows(), poolRows(), attentionRows(), recurrentRows(), indexRows(), genericRows()})
    for (const KernelRow& row : rows)
      if (row.op == op && accepts(row)) return &row;
  return nullptr;
}

}  // namespace

KernelChoice chooseKernel(const Problem& problem, const Machine& machine) {
  KernelChoice choice;
  choice.row = firstRow(opOf(problem.attrs.op()), [&](const KernelRow& row) {
    const Decision decision = row.applies(problem, machine);
    if (!decision) choice.refused.push_back({std::string(row.name), decision.reason()});
    return static_cast<bool>(decision);
  });
  return choice;
}

const KernelRow* findKernel(Op op, std::string_view name) {
  return firstRow(op, [&](const KernelRow& row) { return row.name == name; });
}

}  // namespace aglow::cpu
