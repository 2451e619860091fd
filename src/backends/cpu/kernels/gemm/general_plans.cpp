// Matrix products: which side is packed, and the batch as far as it does not join the rows.
#include "backends/cpu/kernels/gemm/general_desc.h"
#include "backends/cpu/kernels/generic_plans.h"

namespace aglow::cpu::generic {

KernelPlan matMul(const Problem& problem, const Machine& machine) {
  KernelPlan plan;
  const Shape& a = problem.inType(0).shape();
  const Shape& b = problem.inType(1).shape();
  const Shape& y = problem.outType().shape();
  if (y.elements() == 0) return plan;
  const int64_t n = y[y.rank() - 1];
  const int64_t k = a[a.rank() - 1];
  int64_t m = y[y.rank() - 2];
  const auto leading = [](const Shape& s) { return Shape(std::vector(s.dims().begin(), s.dims().end() - 2)); };
  const Shape batch = leading(y);
  // Steps are in matrices. Where the right side stays the same, the left matrices are one below the other.
  std::vector<StridedAxis> items =
      joinedAxes(batch.dims(), broadcastStrides(leading(a), batch), broadcastStrides(leading(b), batch));
  const int64_t rowsOfItem = m;
  if (items.back().from == 1 && items.back().to == 0) {
    m *= items.back().extent;
    items.pop_back();
  }

  MatMulDesc desc{};
  desc.left = 1, desc.right = 2;
  desc.rows = m, desc.cols = n, desc.depth = k;
  desc.leftRow = k, desc.leftDepth = 1;
  desc.rightDepth = n, desc.rightCol = 1;
  desc.resultRow = n, desc.resultCol = 1;
  // Columns fill vectors, so the longer side should have them.
  const bool swap = n < machine.lanes && m > n;
  if (swap) {
    std::swap(desc.left, desc.right);
    std::swap(desc.rows, desc.cols);
    std::swap(desc.leftRow, desc.rightCol);
    std::swap(desc.leftDepth, desc.rightDepth);
    std::swap(desc.resultRow, desc.resultCol);
  }
  int64_t outer = 1;
  for (const StridedAxis& axis : items) outer *= axis.extent;
  for (const StridedAxis& axis : items) {
    outer /= axis.extent;
    const int64_t stepA = axis.from * rowsOfItem * k;
    const int64_t stepB = axis.to * k * n;
    addAxis(desc.blocks, {axis.extent, {swap ? stepB : stepA, swap ? stepA : stepB, outer * m * n}});
  }
  addAxis(desc.blocks,
          {ceilDiv(desc.rows, kProductRows), {kProductRows * desc.leftRow, 0, kProductRows * desc.resultRow}});
  addAxis(desc.blocks,
          {ceilDiv(desc.cols, kProductCols), {0, kProductCols * desc.rightCol, kProductCols * desc.resultCol}});
  const int64_t ofItem =
      std::min(desc.rows, kProductRows) * std::min(desc.cols, kProductCols) * std::max<int64_t>(k, 1);
  desc.items = dealt(desc.blocks.count(), ofItem, kUnitProducts);
  const ElemKind kind = problem.outType().kind();
  plan.steps.push_back(step("matmul" + productName(kind) + lanesName(machine), desc, desc.items, loadAndStore(kind)));
  plan.flops = 2.0 * static_cast<double>(y.elements()) * static_cast<double>(k);
  return plan;
}

}  // namespace aglow::cpu::generic
