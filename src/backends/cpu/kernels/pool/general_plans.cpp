// Pools: rows of results in blocks.
#include <bit>

#include "backends/cpu/kernels/generic_plans.h"
#include "backends/cpu/kernels/pool/pool_plan.h"
#include "reference/arithmetic.h"
#include "reference/window_runs.h"

namespace aglow::cpu::generic {

PoolDesc poolDesc(const Problem& problem) {
  const Shape& x = problem.inType(0).shape();
  const std::vector<int64_t>& kernel = problem.attrs.ints("kernel");
  PoolDesc desc{};
  desc.window = windowDesc(problem, kernel);
  desc.inputSize = planeSize(spatialExtents(x));
  const int64_t width = desc.window.axis[desc.window.rank - 1].result;
  desc.rows = planeSize(spatialExtents(problem.outType().shape())) / width;
  desc.blocks = ceilDiv(width, kPoolCols);
  // Padding may make windows far larger than what they see.
  int64_t taps = 1;
  for (int64_t a = 0; a < desc.window.rank; ++a)
    taps *= std::min(desc.window.axis[a].kernel, std::max<int64_t>(desc.window.axis[a].input, 1));
  desc.items = dealt(x[0] * x[1] * desc.rows * desc.blocks, std::min(width, kPoolCols) * taps, 4 * kUnitElements);
  return desc;
}

namespace {

KernelPlan maxPlan(const Problem& problem, const std::string& kernel) {
  KernelPlan plan;
  if (problem.outType().elements() == 0) return plan;
  const ElemKind kind = problem.outType().kind();
  PoolDesc desc = poolDesc(problem);
  desc.start = isFloat(kind) ? std::bit_cast<int64_t>(lowestOf<double>(kind)) : lowestOf<int64_t>(kind);
  desc.flip = kind == ElemKind::UInt64 ? kSignBit : 0;
  plan.steps.push_back(step(kernel + domainName(domainFor(kind)), desc, desc.items, loadAndStore(kind)));
  return plan;
}

}  // namespace

KernelPlan maxPool(const Problem& problem, const Machine&) { return maxPlan(problem, "max_pool"); }
KernelPlan maxPoolWithIndices(const Problem& problem, const Machine&) { return maxPlan(problem, "max_pool_index"); }

KernelPlan avgPool(const Problem& problem, const Machine&) {
  KernelPlan plan;
  if (problem.outType().elements() == 0) return plan;
  const ElemKind kind = problem.outType().kind();
  PoolDesc desc = poolDesc(problem);
  desc.countPadding = problem.attrs.integer("count_include_pad");
  plan.steps.push_back(step("avg_pool" + domainName(domainFor(kind)), desc, desc.items, loadAndStore(kind)));
  return plan;
}

}  // namespace aglow::cpu::generic
