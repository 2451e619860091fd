// Which kernels take elements at computed places whole, without a table of flat places.
#include "backends/cpu/kernels/generic_plans.h"
#include "backends/cpu/kernels/index/cpu_desc.h"
#include "backends/cpu/kernels/reasons.h"

namespace aglow::cpu {

namespace {

Decision along(const Problem& problem, const Machine&) {
  return needsElements({&problem.outType(), &problem.inType(0)});
}

KernelPlan planAlong(const Problem& problem, const Machine&) {
  const Shape &data = problem.inType(0).shape(), &indices = problem.inType(1).shape();
  const auto axis = static_cast<int>(problem.attrs.integer("axis"));
  const std::vector<int64_t> strides = data.strides();
  const int last = indices.rank() - 1;
  GatherAlongDesc desc{};
  desc.indices = {static_cast<int64_t>(problem.out.size()) + 1, elemBytes(problem.inType(1).kind()), indices.elements(),
                  data[axis]};
  desc.elemBytes = elemBytes(problem.outType().kind());
  desc.cols = indices[last];
  desc.pieces = ceilDiv(desc.cols, kGatherCols);
  desc.beside = axis == last ? 0 : 1;
  desc.skip = strides[static_cast<size_t>(axis)];
  for (int a = 0; a < last; ++a)
    if (indices[a] > 1) generic::addAxis(desc.rows, {indices[a], {a == axis ? 0 : strides[static_cast<size_t>(a)]}});
  desc.items = generic::dealt(desc.indices.count / desc.cols * desc.pieces, std::min(desc.cols, kGatherCols),
                              generic::kUnitElements);
  KernelPlan plan;
  plan.steps.push_back(generic::step("gather_along", desc, desc.items));
  return plan;
}

constexpr KernelRow kRows[] = {{Op::GatherElements, "along", along, planAlong}};

}  // namespace

std::span<const KernelRow> indexRows() { return kRows; }

}  // namespace aglow::cpu
