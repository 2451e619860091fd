// Instructions that run part by part: an instruction and those after it that are marked `chained`. A part of each
// member reads, of what the others write, only what the same part of those wrote, so parts need not wait for each
// other.
#pragma once

#include <span>

#include "inst/beside.h"
#include "inst/program.h"

namespace aglow {

// At most this many are in one chain.
inline constexpr size_t kMostChained = 16;

// The end of the chain that begins at an instruction. Nothing stands between its members, marks included.
size_t chainEnd(std::span<const Instr> instrs, size_t first);
// The end of the chain, or of the instructions side by side, that begins at an instruction.
size_t groupEnd(std::span<const Instr> instrs, size_t first);

// Whether an instruction can go part by part: it computes, and is cut into parts that are as large. Under a predicate
// each part belongs to rows of its own, and is skipped with them.
Status checkCut(const Program& program, const Instr& instr);

// Whether two instructions have as many parts, and no part of the one touches what another part of the other writes.
bool partByPart(std::span<const Extent> extents, const Instr& a, const Instr& b);

}  // namespace aglow
