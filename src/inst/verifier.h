// The rules of a valid program. Checked after every pass in tests and debug builds.
#pragma once

#include <span>

#include "inst/program.h"

namespace aglow {

// Types and operands against the records, lifetimes, reads before writes, writes to what is only read, asynchronous
// copies, and, once placed, buffers that overlap. BadVerify with the instruction's number and text.
Status verify(const Program& program);
// What the plan of an instruction that computes says: names, sizes, the view of an epilogue, and working memory, which
// a placed program has. `verify` asks it of every instruction.
Status verifyPlan(const Program& program, const Instr& instr);
// Those of one module: each by itself, names that differ, and declared regions of one name that are the same.
Status verify(std::span<const Program> programs);

}  // namespace aglow
