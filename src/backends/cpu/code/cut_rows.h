// Rows that a predicate rules out are not computed: plans get a cut into them, where an instruction falls into rows.
#pragma once

#include "backends/cpu/kernels/plan.h"
#include "inst/program.h"

namespace aglow {

// Whether any plan was changed.
bool cutRows(Program& program, const cpu::Machine& machine);

}  // namespace aglow
