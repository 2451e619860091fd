// Which kernels pool f32 maps whose channels are planes, and put their windows together again.
#include <fmt/format.h>

#include "backends/cpu/kernels/generic_plans.h"
#include "backends/cpu/kernels/pool/pool_plan.h"
#include "backends/cpu/kernels/reasons.h"
#include "ops/window.h"

namespace aglow::cpu {

namespace {

Decision foldsRows(const Problem& problem, const Machine&) {
  if (Decision no = needsF32(problem); !no) return no;
  if (Decision no = needsElements({&problem.outType(), &problem.inType(0)}); !no) return no;
  const WindowDesc window = generic::poolDesc(problem).window;
  int64_t rows = 1;
  for (int64_t a = 0; a + 1 < window.rank; ++a) {
    const int64_t taps = std::min(window.axis[a].kernel, window.axis[a].input);
    if (taps > kPoolRows / rows)
      return Decision::no(fmt::format("needs windows of at most {} rows, has {} along one axis", kPoolRows, taps));
    rows *= taps;
  }
  const WindowAxis& inner = window.axis[window.rank - 1];
  const int64_t steps = std::min(inner.result, kPoolCols) - 1;
  if (inner.kernel > kPoolSpan || inner.dilation > kPoolSpan || inner.stride > kPoolSpan ||
      steps * inner.stride + (inner.kernel - 1) * inner.dilation + 1 > kPoolSpan)
    return Decision::no(
        fmt::format("needs {} results of a row to see at most {} elements of it", steps + 1, kPoolSpan));
  return Decision::yes();
}

KernelPlan planRows(const Problem& problem, const Machine& machine, const char* kernel, bool countPadding) {
  PoolDesc desc = generic::poolDesc(problem);
  desc.countPadding = countPadding ? 1 : 0;
  KernelPlan plan;
  plan.steps = {{.kernel = kernel + generic::lanesName(machine),
                 .descriptor = descriptorBytes(desc),
                 .units = desc.items.units()}};
  return plan;
}

KernelPlan planMax(const Problem& problem, const Machine& machine) {
  return planRows(problem, machine, "max_rows", false);
}

KernelPlan planMean(const Problem& problem, const Machine& machine) {
  return planRows(problem, machine, "mean_rows", problem.attrs.flag("count_include_pad"));
}

Decision reaching(const Problem& problem, const Machine&) {
  if (Decision no = needsF32(problem); !no) return no;
  return needsElements({&problem.outType(), &problem.inType(0)});
}

KernelPlan planCol2Im(const Problem& problem, const Machine& machine) {
  const Shape& image = problem.outType().shape();
  const Result<Window> window = windowOf(problem.attrs, problem.attrs.ints("kernel"));
  AGLOW_CHECK(window.ok(), "a window that its type rule takes");
  Col2ImDesc desc{};
  desc.rows = desc.taps = desc.windows = 1;
  desc.window.rank = window->axes();
  int64_t sums = 1;
  for (int a = 0; a < window->axes(); ++a) {
    const auto i = static_cast<size_t>(a);
    WindowAxis& axis = desc.window.axis[a];
    axis = {.input = image[a + 2],
            .kernel = window->kernel[i],
            .stride = window->strides[i],
            .dilation = window->dilations[i],
            .before = window->before[i],
            .after = window->after[i]};
    axis.result = (axis.input + axis.before + axis.after - window->reach(a)) / axis.stride + 1;
    if (a + 1 < window->axes()) desc.rows *= axis.input;
    desc.taps *= axis.kernel;
    desc.windows *= axis.result;
    sums *= ceilDiv(axis.kernel, axis.stride);
  }
  const int64_t width = image.dims().back();
  desc.items = generic::dealt(image[0] * image[1] * desc.rows, width * sums, 4 * generic::kUnitElements);
  KernelPlan plan;
  plan.steps = {{.kernel = "col2im" + generic::lanesName(machine),
                 .descriptor = descriptorBytes(desc),
                 .units = desc.items.units()}};
  return plan;
}

constexpr KernelRow kRows[] = {
    {Op::Col2Im, "rows", reaching, planCol2Im},
    {Op::MaxPool, "rows", foldsRows, planMax},
    {Op::AvgPool, "rows", foldsRows, planMean},
};

}  // namespace

std::span<const KernelRow> poolRows() { return kRows; }

}  // namespace aglow::cpu
