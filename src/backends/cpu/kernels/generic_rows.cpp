// The general kernels' rows: one for each record that asks for a kernel, for everything that narrower kernels leave.
#include "backends/cpu/kernels/generic_plans.h"

namespace aglow::cpu {

namespace {

Decision always(const Problem&, const Machine&) { return Decision::yes(); }

constexpr KernelRow kRows[] = {
#define AGLOW_ROW(name, function) {Op::name, "general", always, generic::function},
#include "backends/kernel_table.inc"
#undef AGLOW_ROW
};

}  // namespace

std::span<const KernelRow> genericRows() { return kRows; }

}  // namespace aglow::cpu
