// Observe: how a value is cut into items and units.
#include "backends/cpu/kernels/generic_plans.h"
#include "backends/cpu/kernels/observe/observe_desc.h"

namespace aglow::cpu::generic {

KernelPlan observe(const Problem& problem, const Machine& machine) {
  // An item stays in the nearest cache, but has rows enough that what it finds is less than what it reads.
  constexpr int64_t kItemElements = 4096, kItemRows = 32;
  constexpr int64_t kMostUnits = 16, kCountedTogether = 1 << 15, kMostElements = int64_t{1} << 31;
  constexpr int64_t kOdd = 64;  // counts between tables
  ObserveDesc desc{};
  desc.form = observedForm(problem.attrs, problem.inType(2).shape());
  desc.channels = problem.outType(1).dim(1);
  desc.bins = HistogramBins::of(problem.attrs.integer("step_bits"));
  desc.stride = alignUp(desc.bins.counts(), kOdd) + kOdd;
  const int64_t lanes = std::max<int64_t>(desc.form.lanes, 1), elements = problem.inType(2).elements();
  desc.pieceRows = lanes == 1 ? kItemElements : std::max(kItemRows, kItemElements / lanes);
  desc.pieces = elements == 0 ? 0 : ceilDiv(desc.form.rows, desc.pieceRows);
  desc.items.count = desc.form.outer * desc.form.groups * desc.pieces;
  // A count of a unit fits 32 bits.
  const int64_t units =
      std::max(std::clamp<int64_t>(elements / kCountedTogether, 1, kMostUnits), ceilDiv(elements, kMostElements));
  desc.items.perUnit = std::max<int64_t>(ceilDiv(desc.items.count, units), 1);

  KernelPlan plan;
  plan.scratchBytes =
      desc.foundBytes() + desc.items.units() * desc.unitCounts() * static_cast<int64_t>(sizeof(uint32_t));
  if (desc.items.count > 0) plan.steps.push_back(step("observe" + lanesName(machine), desc, desc.items));
  plan.steps.push_back(step("observed", desc, Items{1, 1}));
  return plan;
}

}  // namespace aglow::cpu::generic
