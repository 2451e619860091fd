// Reading and writing at computed places: rows in pieces, and indices that are checked even when nothing moves.
#include "backends/cpu/kernels/generic_plans.h"
#include "backends/cpu/kernels/index/cpu_desc.h"
#include "reference/axis_lines.h"

namespace aglow::cpu::generic {

namespace {

IndexDesc indexDesc(const Problem& problem, int64_t extent) {
  const Type& indices = problem.inType(1);
  return {static_cast<int64_t>(problem.out.size()) + 1, elemBytes(indices.kind()), indices.elements(), extent};
}

void addCheck(KernelPlan& plan, const IndexDesc& indices) {
  if (indices.count > 0) plan.steps.push_back(step("check_indices", indices, Items{1, 1}));
}

}  // namespace

KernelPlan gather(const Problem& problem, const Machine&) {
  KernelPlan plan;
  const AxisLines lines(problem.inType(0).shape(), problem.attrs.integer("axis"));
  GatherDesc desc{};
  desc.indices = indexDesc(problem, lines.extent);
  if (problem.outType().elements() == 0) {
    addCheck(plan, desc.indices);
    return plan;
  }
  desc.rowBytes = lines.stride * elemBytes(problem.outType().kind());
  desc.pieceBytes = desc.rowBytes <= 8 * kUnitElements ? desc.rowBytes : 4 * kUnitElements;
  desc.pieces = ceilDiv(desc.rowBytes, desc.pieceBytes);
  desc.items = dealt(lines.outer * desc.indices.count * desc.pieces, desc.pieceBytes, 4 * kUnitElements);
  plan.steps.push_back(step("gather", desc, desc.items));
  return plan;
}

KernelPlan scatter(const Problem& problem, const Machine&) {
  KernelPlan plan;
  const Type& data = problem.inType(0);
  const AxisLines rows(data.shape(), 0);
  ScatterDesc desc{};
  desc.indices = indexDesc(problem, rows.extent);
  if (data.elements() == 0) {
    addCheck(plan, desc.indices);
    return plan;
  }
  const std::string& reduction = problem.attrs.word("reduction");
  desc.combines = reduction != "none" ? 1 : 0;
  desc.how = reduction == "add" ? kSum : reduction == "mul" ? kProd : reduction == "max" ? kMax : kMin;
  desc.flip = data.kind() == ElemKind::UInt64 && (desc.how == kMax || desc.how == kMin) ? kSignBit : 0;
  desc.elemBytes = elemBytes(data.kind());
  desc.rowSize = rows.stride;
  desc.pieceSize = rows.stride <= 2 * kUnitElements ? rows.stride : kUnitElements;
  desc.pieces = ceilDiv(desc.rowSize, desc.pieceSize);
  desc.items = dealt(rows.extent * desc.pieces, desc.pieceSize, kUnitElements);
  plan.scratchBytes = (desc.indices.extent + desc.indices.count) * static_cast<int64_t>(sizeof(int64_t));
  plan.steps.push_back(step("scatter_chains", desc, Items{1, 1}));
  plan.steps.push_back(
      step("scatter" + domainName(domainFor(data.kind())), desc, desc.items, loadAndStore(data.kind())));
  return plan;
}

}  // namespace aglow::cpu::generic
