// What an instruction costs by its types alone: operations and bytes, for profiles and for
// how it is shared by threads.
#pragma once

#include <cstdint>

#include "inst/program.h"

namespace aglow {

struct Cost {
  double flops = 0;   // arithmetic operations; a multiplication with an addition counts as two, padding not at all
  int64_t bytes = 0;  // read and written, each operand once, however often caches are filled
};

Cost costOf(const Program& program, const Instr& instr);

// A rough time for one thread on any of today's processors.
double microsecondsOf(const Cost& cost);
// How many threads get work of this time done sooner than fewer would: from 1 to kMostThreads, more than which find
// nothing to do in the units that plans have.
inline constexpr int kMostThreads = 64;
int threadsWorth(double microseconds);

}  // namespace aglow
