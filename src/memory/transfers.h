// Copies between the memories of host and device: what has to travel, and when it begins to, so that it travels while
// something else is computed. Two passes: the first makes programs right, the second makes them fast.
#pragma once

#include <cstdint>
#include <span>

#include "memory/latency_model.h"

namespace aglow {

// Whether a device with so many bytes has room for everything, with a little left for what the backend adds.
bool fitsWhole(std::span<const Program> programs, int64_t bytes);

// Inputs and outputs stay in the host's memory, and so do constants that the device has no room for; copies in the
// arena take their place, each made right before its first use, or sent right after its last change. Of the choices of
// constants that stay, the one with which prefetchCopies gets the shortest time is taken. Gives the bytes that an arena
// may have; the programs are placed. TooLarge, with the fewest bytes that would do for these programs, where nothing
// fits.
Result<int64_t> placeCopies(std::span<Program> programs, const LatencyModel& model);

// Copies from the host begin as early, and are made in the order in which they are needed; those to the host are waited
// for as late as the arena's bytes allow. Reports whether anything changed; the program is placed.
bool prefetchCopies(Program& program, int64_t arenaBytes);

}  // namespace aglow
