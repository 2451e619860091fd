// Descriptors of kernels that look for the largest and smallest along an axis.
#pragma once

#include "backends/cpu/kernels/domain.h"
#include "backends/cpu/kernels/lines.h"

namespace aglow::cpu {

struct ArgReduceDesc {
  LinesDesc lines;
  int64_t largest, last;
  int64_t flip;  // kSignBit for 64 bits without sign
};

// An item is a line.
struct TopKDesc {
  int64_t extent, stride, k;
  int64_t largest;
  int64_t flip;
  Items items;
};

}  // namespace aglow::cpu
