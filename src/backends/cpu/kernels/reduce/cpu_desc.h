// Descriptors of reductions and scans.
#pragma once

#include "backends/cpu/kernels/domain.h"
#include "backends/cpu/kernels/lines.h"

namespace aglow::cpu {

// Each result combines `reduced` places, at each of which `run` neighbours. Results whose elements are neighbours are
// computed side by side: the last axis of `kept` counts blocks of `block` out of `cols`.
struct ReduceDesc {
  int64_t how;      // Combination
  int64_t divisor;  // of means; -1 otherwise
  int64_t flip;     // kSignBit where comparisons need it
  int64_t withoutSign;
  int64_t start;  // bits of the neutral value, a double or an int64
  int64_t cols, block, run, places;
  Items items;
  Axes<1> kept;
  Axes<1> reduced;
};

struct ScanDesc {
  LinesDesc lines;
  int64_t how;  // kSum or kProd
  int64_t exclusive, reverse;
};

}  // namespace aglow::cpu
