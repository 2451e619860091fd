// Instructions that may run at the same time: an instruction and those after it that are marked `beside`.
#pragma once

#include <span>
#include <vector>

#include "inst/program.h"

namespace aglow {

// At most this many are in one group.
inline constexpr size_t kMostBeside = 16;

// The end of the group that begins at an instruction. Nothing stands between its members, marks included.
size_t besideEnd(std::span<const Instr> instrs, size_t first);

// Whether an instruction may be in a group at all: it computes or copies, under no predicate.
bool mayBeBeside(const Instr& instr);

// Whether neither writes bytes that the other touches. Extents are those of the program's regions.
bool independent(std::span<const Extent> extents, const Instr& a, const Instr& b);

// Every instruction runs alone again, as a whole.
void forgetBeside(Program& program);

}  // namespace aglow
