// Sliding windows in descriptors of kernels.
#pragma once

#include "backends/cpu/kernels/walk.h"

namespace aglow::cpu {

struct WindowAxis {
  int64_t input, result;  // extents
  int64_t kernel, stride, dilation, before, after;
};

// Spatial axes from the outermost to the innermost, at least one.
struct WindowDesc {
  int64_t rank;
  WindowAxis axis[kMaxAxes];
};

}  // namespace aglow::cpu
