// How the CPU runs instructions: the plans it makes, and what they stand for.
#pragma once

#include "backends/cpu/kernels/plan.h"
#include "inst/program.h"

namespace aglow::cpu {

// Loops for what is data-parallel and for rows; the first row of the kernel table that applies for everything else.
// UnsupportedFeature with the reason of the last row where none does.
Result<Plan> planInstr(const Program& program, const Instr& instr, const Machine& machine);

// The plan of an instruction that has one, changed so that its units fall into parts as a chain wants them; none where
// they cannot. The axis is one of the epilogue's extents, or 0 for the rows of loops.
std::optional<Plan> cutPlan(const Program& program, const Instr& instr, int64_t axis, int64_t images, int64_t parts,
                            const Machine& machine);

// The kernels of a planned instruction that is not loops; internal error where its plan is not one for this machine.
KernelPlan kernelsOf(const Program& program, const Instr& instr, const Machine& machine);

}  // namespace aglow::cpu
