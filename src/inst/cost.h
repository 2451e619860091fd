// What an instruction costs by its types alone: operations and bytes, for profiles.
#pragma once

#include <cstdint>

#include "inst/program.h"

namespace aglow {

struct Cost {
  double flops = 0;   // arithmetic operations; a multiplication with an addition counts as two, padding not at all
  int64_t bytes = 0;  // read and written, each operand once, however often caches are filled
};

Cost costOf(const Program& program, const Instr& instr);

}  // namespace aglow
