// Which kernels convolve and pool f32 maps with blocked channels.
#include <fmt/format.h>

#include "kernels/conv/conv_plan.h"
#include "ops/window.h"

namespace aglow::cpu {

namespace {

Decision lanesFit(const Problem& problem, const Machine& machine) {
  const Type& y = problem.outType();
  if (y.elements() == 0 || problem.inType(0).elements() == 0) return Decision::no("nothing to compute");
  if (y.dim(4) != machine.lanes)
    return Decision::no(fmt::format("blocks of {} channels, not {}", y.dim(4), machine.lanes));
  return Decision::yes();
}

// All that types and attributes say; the window's kernel is given, because filters differ.
ConvShape shapeOf(const Problem& problem, int64_t kh, int64_t kw) {
  const Type &x = problem.inType(0), &y = problem.outType();
  const Result<Window> window = windowOf(problem.attrs, {kh, kw});
  AGLOW_CHECK(window.ok(), "a window that is not valid");
  return {.images = x.dim(0),
          .channels = x.rank() == 4 ? x.dim(1) : x.dim(1) * x.dim(4),
          .height = x.dim(2),
          .width = x.dim(3),
          .outputs = y.dim(1) * y.dim(4),
          .outHeight = y.dim(2),
          .outWidth = y.dim(3),
          .kh = kh,
          .kw = kw,
          .sy = window->strides[0],
          .sx = window->strides[1],
          .py = window->before[0],
          .px = window->before[1],
          .dy = window->dilations[0],
          .dx = window->dilations[1],
          .planar = x.rank() == 4};
}

KernelPlan planBlocked(const Problem& problem, const Machine& machine) {
  const Type& filter = problem.inType(1);
  ConvShape shape = shapeOf(problem, filter.dim(1), filter.dim(2));
  shape.group = problem.attrs.integer("group");
  shape.channels = filter.dim(3) * shape.group;
  shape.outputs = problem.attrs.integer("outputs");
  return planBlockedConv(shape, machine);
}

constexpr KernelRow kRows[] = {
    {Op::BlockedConv, "tiles", lanesFit, planBlocked},
};

}  // namespace

std::span<const KernelRow> convRows() { return kRows; }

}  // namespace aglow::cpu
