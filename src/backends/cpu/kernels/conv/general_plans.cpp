// Convolution: the window's axes as far as they say something, and blocks of channels by positions.
#include "backends/cpu/kernels/conv/general_desc.h"
#include "backends/cpu/kernels/gemm/general_desc.h"
#include "backends/cpu/kernels/generic_plans.h"
#include "reference/window_runs.h"

namespace aglow::cpu::generic {

WindowDesc windowDesc(const Problem& problem, const std::vector<int64_t>& kernel) {
  const Result<Window> window = windowOf(problem.attrs, kernel);
  AGLOW_CHECK(window.ok(), "the window of a node was checked");
  const std::vector<int64_t> input = spatialExtents(problem.inType(0).shape());
  const std::vector<int64_t> result = spatialExtents(problem.outType().shape());
  // Without padding and steps a tap of one sees its axis as it is; such axes next to each other are one.
  const auto plain = [](const WindowAxis& axis) {
    return axis.kernel == 1 && axis.stride == 1 && axis.before == 0 && axis.input == axis.result;
  };
  WindowDesc desc{};
  for (size_t a = 0; a < kernel.size(); ++a) {
    const WindowAxis next{input[a],          result[a],       kernel[a], window->strides[a], window->dilations[a],
                          window->before[a], window->after[a]};
    WindowAxis* last = desc.rank > 0 ? &desc.axis[desc.rank - 1] : nullptr;
    if (last != nullptr && plain(*last) && plain(next) && next.after == 0 && last->after == 0) {
      last->input *= next.input;
      last->result *= next.result;
    } else {
      desc.axis[desc.rank++] = next;
    }
  }
  return desc;
}

KernelPlan conv(const Problem& problem, const Machine& machine) {
  KernelPlan plan;
  const Shape& x = problem.inType(0).shape();
  const Shape& filter = problem.inType(1).shape();
  const Shape& y = problem.outType().shape();
  if (y.elements() == 0) return plan;
  ConvDesc desc{};
  desc.window = windowDesc(problem, spatialExtents(filter));
  desc.hasBias = problem.has(2) ? 1 : 0;
  desc.groups = problem.attrs.integer("group");
  desc.channels = y[1] / desc.groups;
  desc.depth = filter[1];
  desc.taps = planeSize(spatialExtents(filter));
  desc.inputSize = planeSize(spatialExtents(x));
  desc.resultSize = planeSize(spatialExtents(y));
  desc.channelBlocks = ceilDiv(desc.channels, kProductRows);
  desc.positionBlocks = ceilDiv(desc.resultSize, kProductCols);
  const int64_t ofItem = std::min(desc.channels, kProductRows) * std::min(desc.resultSize, kProductCols) *
                         std::max<int64_t>(desc.depth * desc.taps, 1);
  desc.items = dealt(x[0] * desc.groups * desc.channelBlocks * desc.positionBlocks, ofItem, kUnitProducts);
  const ElemKind kind = problem.outType().kind();
  plan.steps.push_back(step("conv" + productName(kind) + lanesName(machine), desc, desc.items, loadAndStore(kind)));
  plan.flops = 2.0 * static_cast<double>(y.elements()) * static_cast<double>(desc.depth * desc.taps);
  return plan;
}

}  // namespace aglow::cpu::generic
