// Which kernels convolve and pool maps with blocked channels.
#include <fmt/format.h>

#include "backends/cpu/kernels/conv/conv_plan.h"
#include "backends/cpu/kernels/gemm/matrix_desc.h"
#include "backends/cpu/kernels/gemm/tile_plan.h"
#include "backends/cpu/kernels/reasons.h"
#include "ops/window.h"

namespace aglow::cpu {

namespace {

Decision lanesFit(const Problem& problem, const Machine& machine) {
  const Type& y = problem.outType();
  if (y.rank() != 5) return Decision::no(fmt::format("needs blocks of channels, has {}", y.text()));
  if (y.dim(4) != machine.lanes)
    return Decision::no(fmt::format("needs blocks of {} channels, has {}", machine.lanes, y.dim(4)));
  return Decision::yes();
}

Decision narrowFits(const Problem& problem, const Machine& machine) {
  if (Decision no = multipliesPairs(problem.inType(0).kind(), machine); !no) return no;
  return lanesFit(problem, machine);
}

// All that types and attributes say; the window's kernel is given, because filters differ. A pool has one more axis,
// the lanes of a block.
ConvShape shapeOf(const Problem& problem, std::vector<int64_t> kernel) {
  const Type &x = problem.inType(0), &y = problem.outType();
  const int64_t kh = kernel[0], kw = kernel[1];
  const Result<Window> window = windowOf(problem.attrs, std::move(kernel));
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
          .bottom = window->after[0],
          .right = window->after[1],
          .planar = x.rank() == 4};
}

KernelPlan planBlocked(const Problem& problem, const Machine& machine) {
  const Type& filter = problem.inType(1);
  ConvShape shape = shapeOf(problem, {filter.dim(1), filter.dim(2)});
  shape.group = problem.attrs.integer("group");
  shape.channels = filter.dim(3) * shape.group;
  shape.outputs = problem.attrs.integer("outputs");
  return planBlockedConv(shape, machine, problem.wish);
}

// All that the filter says besides.
ConvShape narrowShapeOf(const Problem& problem) {
  const Type& filter = problem.inType(1);
  ConvShape shape = shapeOf(problem, {filter.dim(1), filter.dim(2)});
  shape.group = problem.attrs.integer("group");
  shape.channels = filter.dim(3) * filter.dim(5) * shape.group;
  shape.outputs = problem.attrs.integer("outputs");
  return shape;
}

// Channels of a position are worth being put side by side for registers of matrices.
Decision windowsFit(const Problem& problem, const Machine& machine) {
  if (Decision no = hasMatrixRegisters(machine); !no) return no;
  if (Decision no = lanesFit(problem, machine); !no) return no;
  const Type &x = problem.inType(0), &y = problem.outType(), &filter = problem.inType(1);
  if (x.dim(4) != machine.lanes)
    return Decision::no(fmt::format("needs an image in blocks of {} channels, has {}", machine.lanes, x.dim(4)));
  if (const int64_t group = problem.attrs.integer("group"); group != 1)
    return Decision::no(fmt::format("needs one group, has {}", group));
  const int64_t rows = y.dim(0) * y.dim(2) * y.dim(3);
  const int64_t bytes = filter.dim(1) * filter.dim(2) * filter.dim(3) * filter.dim(5) * elemBytes(x.kind());
  if (const int64_t outputs = problem.attrs.integer("outputs"); !areWorthRows(rows, bytes, outputs))
    return Decision::no(fmt::format("needs more than {} windows of {} bytes by {} outputs", rows, bytes, outputs));
  return Decision::yes();
}

KernelPlan planWindows(const Problem& problem, const Machine& machine) {
  return planWindowRows(narrowShapeOf(problem), problem.inType(0).kind(), problem.attrs.integer("outside"), machine);
}

KernelPlan planNarrow(const Problem& problem, const Machine& machine) {
  return planNarrowConv(narrowShapeOf(problem), problem.inType(0).kind(), problem.inType(0).dim(4),
                        problem.attrs.integer("outside"), machine, problem.wish);
}

// The record has no strides and dilations, which are 1.
KernelPlan planWinograd(const Problem& problem, const Machine& machine) {
  ConvShape shape = shapeOf(problem, {3, 3});
  shape.channels = problem.inType(1).dim(2);
  shape.outputs = problem.attrs.integer("outputs");
  return planWinogradConv(shape, problem.attrs.integer("tile"), machine);
}

KernelPlan planDepthwise(const Problem& problem, const Machine& machine) {
  const Type& filter = problem.inType(1);
  ConvShape shape = shapeOf(problem, {filter.dim(1), filter.dim(2)});
  shape.members = filter.dim(3);
  return planPlanes(shape.members == 1 ? "depthwise" : "grouped", shape, {}, machine, problem.wish);
}

KernelPlan planByteDepthwise(const Problem& problem, const Machine& machine) {
  const Type& filter = problem.inType(1);
  const PlaneOptions options{.bytes = true, .outside = problem.attrs.integer("outside")};
  return planPlanes("byte_depthwise", shapeOf(problem, {filter.dim(1), filter.dim(2)}), options, machine, problem.wish);
}

// Pools of blocked maps are pools over three axes that leave the last one alone.
Decision poolsPlanes(const Problem& problem, const Machine& machine) {
  if (problem.inType(0).rank() != 5)
    return Decision::no(fmt::format("needs channels in blocks, has {}", problem.inType(0).text()));
  if (Decision no = needsElements({&problem.outType()}); !no) return no;
  const Result<Window> window = windowOf(problem.attrs, problem.attrs.ints("kernel"));
  if (!window.ok() || window->kernel[2] != 1 || window->strides[2] != 1 || window->before[2] != 0 ||
      window->after[2] != 0 || problem.inType(0).dim(4) != problem.outType().dim(4))
    return Decision::no("needs a window over height and width, has one over a third axis");
  return lanesFit(problem, machine);
}

bool isByte(ElemKind kind) { return kind == ElemKind::UInt8 || kind == ElemKind::Int8; }

Decision findsLargest(const Problem& problem, const Machine& machine) {
  if (!isByte(problem.inType(0).kind()))
    if (Decision no = needsF32(problem); !no) return no;
  return poolsPlanes(problem, machine);
}

KernelPlan planMaxPool(const Problem& problem, const Machine& machine) {
  const ElemKind kind = problem.inType(0).kind();
  const std::string kernel = isByte(kind) ? fmt::format("max_planes_{}", elemName(kind)) : "max_planes";
  return planPlanes(kernel, shapeOf(problem, problem.attrs.ints("kernel")), {}, machine, problem.wish);
}

Decision findsMeans(const Problem& problem, const Machine& machine) {
  if (Decision no = needsF32(problem); !no) return no;
  return poolsPlanes(problem, machine);
}

KernelPlan planAvgPool(const Problem& problem, const Machine& machine) {
  return planPlanes("mean_planes", shapeOf(problem, problem.attrs.ints("kernel")),
                    {.countPadding = problem.attrs.flag("count_include_pad")}, machine, problem.wish);
}

constexpr KernelRow kRows[] = {
    {Op::BlockedConv, "tiles", lanesFit, unlessEmpty<planBlocked>},
    {Op::NarrowConv, "matrix", windowsFit, unlessEmpty<planWindows>},
    {Op::NarrowConv, "tiles", narrowFits, unlessEmpty<planNarrow>},
    {Op::WinogradConv, "winograd", lanesFit, unlessEmpty<planWinograd>},
    {Op::DepthwiseConv, "planes", lanesFit, unlessEmpty<planDepthwise>},
    {Op::ByteDepthwiseConv, "planes", lanesFit, unlessEmpty<planByteDepthwise>},
    {Op::MaxPool, "planes", findsLargest, planMaxPool},
    {Op::AvgPool, "planes", findsMeans, planAvgPool},
};

}  // namespace

std::span<const KernelRow> convRows() { return kRows; }

}  // namespace aglow::cpu
