// The largest and smallest along an axis: lines in blocks, and lines one by one.
#include "backends/cpu/kernels/generic_plans.h"
#include "backends/cpu/kernels/sort/cpu_desc.h"
#include "reference/axis_lines.h"

namespace aglow::cpu::generic {

namespace {

int64_t flipOf(ElemKind kind) { return kind == ElemKind::UInt64 ? kSignBit : 0; }

}  // namespace

KernelPlan argReduce(const Problem& problem, const Machine&) {
  KernelPlan plan;
  const Type& x = problem.inType(0);
  if (x.elements() == 0) return plan;
  const FunctionParam::Domain domain = domainFor(x.kind());
  const ArgReduceDesc desc{linesDesc(x.shape(), problem.attrs.integer("axis")),
                           problem.attrs.word("kind") == "max" ? 1 : 0, problem.attrs.integer("last"),
                           flipOf(x.kind())};
  plan.steps.push_back(
      step("arg_reduce" + domainName(domain), desc, desc.lines.items, {{FunctionParam::Kind::Load, domain, 0}}));
  return plan;
}

KernelPlan topK(const Problem& problem, const Machine&) {
  KernelPlan plan;
  const Type& x = problem.inType(0);
  if (problem.outType().elements() == 0) return plan;
  const AxisLines lines(x.shape(), problem.attrs.integer("axis"));
  TopKDesc desc{
      lines.extent, lines.stride, problem.attrs.integer("k"), problem.attrs.integer("largest"), flipOf(x.kind()), {}};
  desc.items = dealt(lines.outer * lines.stride, lines.extent, kUnitElements);
  plan.steps.push_back(step("top_k" + domainName(domainFor(x.kind())), desc, desc.items, loadAndStore(x.kind())));
  return plan;
}

}  // namespace aglow::cpu::generic
