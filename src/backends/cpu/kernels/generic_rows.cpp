// The general kernels' rows: one for each operator, for everything that narrower kernels leave.
#include "backends/cpu/kernels/generic_plans.h"

namespace aglow::cpu {

namespace {

Decision always(const Problem&, const Machine&) { return Decision::yes(); }

constexpr KernelRow kRows[] = {
    {Op::Transpose, "general", always, generic::transpose},
    {Op::Slice, "general", always, generic::slice},
    {Op::Concat, "general", always, generic::concat},
    {Op::Pad, "general", always, generic::pad},
    {Op::Reduce, "general", always, generic::reduce},
    {Op::ArgReduce, "general", always, generic::argReduce},
    {Op::Scan, "general", always, generic::scan},
    {Op::TopK, "general", always, generic::topK},
    {Op::MatMul, "general", always, generic::matMul},
    {Op::Conv, "general", always, generic::conv},
    {Op::MaxPool, "general", always, generic::maxPool},
    {Op::MaxPoolWithIndices, "general", always, generic::maxPoolWithIndices},
    {Op::AvgPool, "general", always, generic::avgPool},
    {Op::Gather, "general", always, generic::gather},
    {Op::Scatter, "general", always, generic::scatter},
};

}  // namespace

std::span<const KernelRow> genericRows() { return kRows; }

}  // namespace aglow::cpu
