// Plans of sums of outer products (outer.kernel.cpp).
#pragma once

#include "backends/cpu/kernels/plan.h"

namespace aglow::cpu {

Decision outerProductFits(const Problem& problem, const Machine& machine);
KernelPlan planOuterProduct(const Problem& problem, const Machine& machine);

Decision tapProductsFit(const Problem& problem, const Machine& machine);
KernelPlan planTapProducts(const Problem& problem, const Machine& machine);

}  // namespace aglow::cpu
