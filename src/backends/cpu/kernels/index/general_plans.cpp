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

// Single elements along the last axis.
KernelStep gatherElements(const IndexDesc& indices, int64_t outer, int64_t elemBytes) {
  const int64_t cols = std::min(indices.count, kGatherCols);
  const int64_t rows = std::clamp<int64_t>(4 * kUnitElements / cols, 1, outer);
  const GatherElementsDesc desc{indices, elemBytes, outer, rows, ceilDiv(indices.count, cols)};
  return step("gather_elements", desc, Items{ceilDiv(outer, rows) * desc.colBlocks, 1});
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
  const int64_t bytes = elemBytes(problem.outType().kind());
  if (lines.stride == 1) {
    plan.steps.push_back(gatherElements(desc.indices, lines.outer, bytes));
    return plan;
  }
  desc.rowBytes = lines.stride * bytes;
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
  const std::string domain = domainName(domainFor(data.kind()));
  if (desc.combines != 0 && desc.rowSize == 1) {
    plan.scratchBytes = desc.indices.extent * static_cast<int64_t>(sizeof(int64_t));
    plan.steps.push_back(step("scatter_totals" + domain, desc, Items{1, 1}, loadAndStore(data.kind())));
    plan.steps.push_back(step("scatter_narrow" + domain, desc, desc.items, loadAndStore(data.kind())));
    return plan;
  }
  plan.scratchBytes = (desc.indices.extent + desc.indices.count) * static_cast<int64_t>(sizeof(int64_t));
  plan.steps.push_back(step("scatter_chains", desc, Items{1, 1}));
  plan.steps.push_back(step("scatter" + domain, desc, desc.items, loadAndStore(data.kind())));
  return plan;
}

}  // namespace aglow::cpu::generic
