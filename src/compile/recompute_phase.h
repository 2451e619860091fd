// The phase that computes values again instead of keeping them, until a function's arena fits.
#pragma once

#include "backends/phases.h"

namespace aglow {

// To stand before "schedule". Does what it can: whether that is enough, checkArena says in the end.
Phase recomputePhase(int64_t bytes);

// TooLarge, with the bytes that were reached, where an arena does not fit.
Status checkArena(std::span<const Program> programs, int64_t bytes);

}  // namespace aglow
