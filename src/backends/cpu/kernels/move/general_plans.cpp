// Moving operators as strided copies: which axes become rows and columns, and how large the blocks are.
#include "backends/cpu/kernels/generic_plans.h"
#include "backends/cpu/kernels/move/cpu_desc.h"
#include "ops/axes.h"

namespace aglow::cpu::generic {

namespace {

using Ints = std::vector<int64_t>;

struct Place {
  int64_t offset;
  Ints strides;
};

// Where memory is read one element a line, a block of lines serves all of its elements.
constexpr int64_t kTileRows = 64;

void addCopy(KernelPlan& plan, const Machine& machine, const Ints& dims, ElemKind kind, int operand, const Place& from,
             const Place& to) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  std::vector<StridedAxis> axes = joinedAxes(dims, from.strides, to.strides);
  const StridedAxis cols = axes.back();
  axes.pop_back();
  StridedAxis rows{1, 0, 0};
  if (!axes.empty()) {
    auto chosen = axes.end() - 1;
    if (cols.from != 1)
      for (auto axis = axes.begin(); axis != axes.end(); ++axis)
        if (axis->from == 1) chosen = axis;
    rows = *chosen;
    axes.erase(chosen);
  }
  CopyDesc desc{};
  desc.elemBytes = elemBytes(kind);
  desc.wide = machine.lanes >= 16 ? 1 : 0;
  desc.rows = rows.extent, desc.rowFrom = rows.from, desc.rowTo = rows.to;
  desc.cols = cols.extent, desc.colFrom = cols.from, desc.colTo = cols.to;
  if (cols.from == 1) {
    desc.colBlock = cols.extent <= 2 * kUnitElements ? cols.extent : kUnitElements;
    desc.rowBlock = std::clamp<int64_t>(kUnitElements / desc.colBlock, 1, rows.extent);
  } else {
    desc.rowBlock = std::min(rows.extent, kTileRows);
    desc.colBlock = std::min(cols.extent, std::max<int64_t>(kTileRows, kUnitElements / 2 / desc.rowBlock));
  }
  for (const StridedAxis& axis : axes) addAxis(desc.blocks, {axis.extent, {axis.from, axis.to}});
  addAxis(desc.blocks, {ceilDiv(desc.rows, desc.rowBlock), {desc.rowBlock * desc.rowFrom, desc.rowBlock * desc.rowTo}});
  addAxis(desc.blocks, {ceilDiv(desc.cols, desc.colBlock), {desc.colBlock * desc.colFrom, desc.colBlock * desc.colTo}});
  desc.items = dealt(desc.blocks.count(), desc.rowBlock * desc.colBlock, kUnitElements);
  plan.steps.push_back(step("copy", desc, desc.items));
  plan.steps.back().addresses = {{0, to.offset * desc.elemBytes}, {1 + operand, from.offset * desc.elemBytes}};
}

}  // namespace

KernelPlan transpose(const Problem& problem, const Machine& machine) {
  const Shape& y = problem.outType().shape();
  const Ints strides = problem.inType(0).shape().strides();
  Ints permuted;
  for (const int64_t axis : problem.attrs.ints("perm")) permuted.push_back(strides[static_cast<size_t>(axis)]);
  KernelPlan plan;
  addCopy(plan, machine, y.dims(), problem.outType().kind(), 0, {0, permuted}, {0, y.strides()});
  return plan;
}

KernelPlan slice(const Problem& problem, const Machine& machine) {
  const Shape& y = problem.outType().shape();
  KernelPlan plan;
  if (y.elements() == 0) return plan;
  const Ints& starts = problem.attrs.ints("starts");
  const Ints steps = filled(problem.attrs.ints("steps"), y.rank(), 1);
  Place from{0, problem.inType(0).shape().strides()};
  for (int axis = 0; axis < y.rank(); ++axis) {
    const auto a = static_cast<size_t>(axis);
    from.offset += starts[a] * from.strides[a];
    // Along an axis of one element the step is never taken, however far it would go.
    from.strides[a] *= y[axis] > 1 ? steps[a] : 0;
  }
  addCopy(plan, machine, y.dims(), problem.outType().kind(), 0, from, {0, y.strides()});
  return plan;
}

KernelPlan concat(const Problem& problem, const Machine& machine) {
  const Ints strides = problem.outType().shape().strides();
  const auto axis = static_cast<int>(problem.attrs.integer("axis"));
  KernelPlan plan;
  int64_t position = 0;
  for (int i = 0; i < static_cast<int>(problem.in.size()); ++i) {
    const Shape& x = problem.inType(i).shape();
    addCopy(plan, machine, x.dims(), problem.outType().kind(), i, {0, x.strides()},
            {position * strides[static_cast<size_t>(axis)], strides});
    position += x[axis];
  }
  return plan;
}

// Axes without padding join the one before them, so that rows are long.
KernelPlan pad(const Problem& problem, const Machine&) {
  const Shape& x = problem.inType(0).shape();
  const Shape& y = problem.outType().shape();
  KernelPlan plan;
  if (y.elements() == 0) return plan;
  struct PadAxis {
    int64_t result, before, extent;
  };
  std::vector<PadAxis> axes;
  for (int axis = 0; axis < y.rank(); ++axis) {
    const PadAxis next{y[axis], problem.attrs.ints("before")[static_cast<size_t>(axis)], x[axis]};
    if (!axes.empty() && next.result == next.extent)
      axes.back() = {axes.back().result * next.extent, axes.back().before * next.extent,
                     axes.back().extent * next.extent};
    else
      axes.push_back(next);
  }
  if (axes.empty()) axes.push_back({1, 0, 1});
  PadDesc desc{};
  const PadAxis row = axes.back();
  axes.pop_back();
  desc.elemBytes = elemBytes(problem.outType().kind());
  desc.cols = row.result, desc.colBefore = row.before, desc.colExtent = row.extent;
  desc.colBlock = row.result <= 2 * kUnitElements ? row.result : kUnitElements;
  int64_t stride = row.extent;
  std::vector<Axes<1>::Axis> outer(axes.size());
  for (size_t a = axes.size(); a-- > 0;) {
    desc.before[a] = axes[a].before;
    desc.extent[a] = axes[a].extent;
    desc.from -= axes[a].before * stride;
    outer[a] = {axes[a].result, {stride}};
    stride *= axes[a].extent;
  }
  desc.from -= row.before;
  for (const Axes<1>::Axis& axis : outer) addAxis(desc.outer, axis);
  addAxis(desc.outer, {ceilDiv(desc.cols, desc.colBlock), {0}});
  desc.items = dealt(desc.outer.count(), desc.colBlock, kUnitElements);
  plan.steps.push_back(step("pad", desc, desc.items));
  return plan;
}

}  // namespace aglow::cpu::generic
