// Gives the buffers of a program their offsets in the arena, and tells how well that went.
#pragma once

#include <string_view>
#include <vector>

#include "inst/program.h"

namespace aglow {

// TooLarge when all buffers together are beyond what can be addressed. Code that adds up bytes asks this first.
Status checkSizes(const Program& program);

// Needs the marks of markLifetimes. Reports that the program changed. The arena is as small as can be found; or, with
// bytes that would do, perhaps that large.
Result<bool> placeArena(Program& program);
Result<bool> placeArena(Program& program, int64_t enough);

// What a program needs of memory.
struct MemoryReport {
  struct Interval {
    RegionId region = kNoRegion;
    int32_t first = 0;  // the instructions of its alloc
    int32_t last = 0;   // and dealloc
    int64_t offset = 0;
    int64_t bytes = 0;
  };

  int64_t arenaBytes = 0;
  int64_t lowerBound = 0;     // the most bytes alive at once, aligned
  int64_t constantBytes = 0;  // outside of the arena, as are inputs and outputs
  int64_t inputBytes = 0;
  int64_t outputBytes = 0;
  int64_t stateBytes = 0;
  std::vector<Interval> buffers;
};
MemoryReport memoryReport(const Program& program);

}  // namespace aglow
