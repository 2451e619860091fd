// Reductions and scans: which axes are kept and which are combined, and what a block of results is.
#include <bit>

#include "backends/cpu/kernels/generic_plans.h"
#include "backends/cpu/kernels/reduce/cpu_desc.h"
#include "reference/arithmetic.h"
#include "reference/axis_lines.h"

namespace aglow::cpu::generic {

namespace {

Combination combinationOf(const std::string& kind) {
  if (kind == "prod") return kProd;
  if (kind == "max") return kMax;
  return kind == "min" ? kMin : kSum;
}

// The bits of what changes nothing.
int64_t neutral(Combination how, ElemKind kind) {
  const auto value = [&]<class D>(D) {
    if (how == kMax) return lowestOf<D>(kind);
    if (how == kMin) return highestOf<D>(kind);
    return how == kProd ? D{1} : D{0};
  };
  return isFloat(kind) ? std::bit_cast<int64_t>(value(double{})) : value(int64_t{});
}

// How wide blocks are so that `outer` times as many columns are still enough items for many threads.
int64_t blockCols(int64_t outer, int64_t columns) {
  constexpr int64_t kEnough = 16;
  int64_t cols = kWideCols;
  while (cols > kReduceCols && outer * ceilDiv(columns, cols) < kEnough) cols /= 2;
  return cols;
}

}  // namespace

LinesDesc linesDesc(const Shape& shape, int64_t axis, int64_t cols) {
  const AxisLines lines(shape, axis);
  LinesDesc desc{lines.extent, lines.stride, cols, ceilDiv(lines.stride, cols), {}};
  desc.items = dealt(lines.outer * desc.blocks, std::min<int64_t>(lines.stride, cols) * lines.extent, kUnitElements);
  return desc;
}

KernelPlan reduce(const Problem& problem, const Machine& machine) {
  KernelPlan plan;
  const Type& y = problem.outType();
  if (y.elements() == 0) return plan;
  const Shape& x = problem.inType(0).shape();
  const std::vector<int64_t>& axes = problem.attrs.ints("axes");
  const Combination how = combinationOf(problem.attrs.word("kind"));
  const ElemKind kind = y.kind();

  ReduceDesc desc{};
  desc.how = how;
  desc.withoutSign = kind == ElemKind::UInt64 ? 1 : 0;
  desc.flip = desc.withoutSign != 0 && (how == kMax || how == kMin) ? kSignBit : 0;
  desc.start = neutral(how, kind);
  // Axes next to each other that are both kept, or both combined, are one: kept axes have a step in the result.
  std::vector<int64_t> kept(x.dims());
  desc.places = 1;
  for (const int64_t axis : axes) {
    desc.places *= x[static_cast<int>(axis)];
    kept[static_cast<size_t>(axis)] = 1;
  }
  desc.divisor = problem.attrs.word("kind") == "mean" ? desc.places : -1;
  desc.cols = desc.run = 1;
  std::vector<StridedAxis> joined = joinedAxes(x.dims(), x.strides(), broadcastStrides(Shape(kept), x));
  const StridedAxis inner = joined.back();
  if (inner.extent > 1 && inner.from == 1) {
    (inner.to == 0 ? desc.run : desc.cols) = inner.extent;
    joined.pop_back();
  }
  for (const StridedAxis& axis : joined) {
    if (axis.extent == 1 || (axis.to == 0 && desc.places == 0)) continue;
    addAxis(axis.to == 0 ? desc.reduced : desc.kept, {axis.extent, {axis.from}});
  }
  const bool lanes = kind == ElemKind::Float32 && how != kProd;
  desc.block = lanes ? blockCols(desc.kept.count(), desc.cols) : kReduceCols;
  addAxis(desc.kept, {ceilDiv(desc.cols, desc.block), {desc.block}});
  const int64_t each = std::max<int64_t>(desc.places, 1);
  desc.places /= desc.run;
  desc.items = dealt(desc.kept.count(), std::min<int64_t>(desc.cols, desc.block) * each, kUnitElements);

  if (lanes) {
    plan.steps.push_back(step("reduce_lanes" + lanesName(machine), desc, desc.items));
  } else {
    plan.steps.push_back(step("reduce" + domainName(domainFor(kind)), desc, desc.items, loadAndStore(kind)));
  }
  return plan;
}

KernelPlan scan(const Problem& problem, const Machine& machine) {
  KernelPlan plan;
  const Type& x = problem.inType(0);
  if (x.elements() == 0) return plan;
  const int64_t axis = problem.attrs.integer("axis");
  const AxisLines along(x.shape(), axis);
  const bool lanes = x.kind() == ElemKind::Float32 && along.stride >= machine.lanes;
  const ScanDesc desc{linesDesc(x.shape(), axis, lanes ? blockCols(along.outer, along.stride) : kReduceCols),
                      combinationOf(problem.attrs.word("kind")), problem.attrs.integer("exclusive"),
                      problem.attrs.integer("reverse")};
  if (lanes)
    plan.steps.push_back(step("scan_lanes" + lanesName(machine), desc, desc.lines.items));
  else
    plan.steps.push_back(
        step("scan" + domainName(domainFor(x.kind())), desc, desc.lines.items, loadAndStore(x.kind())));
  return plan;
}

}  // namespace aglow::cpu::generic
