// What generated code and the program around it agree on; generated code's own side is backends/cpu/kernels/program.h.
#pragma once

#include "backends/cpu/kernels/program.h"

namespace aglow::codegen {

using cpu::kStatusBits;
using cpu::RunTime;
using cpu::StepFunction;

}  // namespace aglow::codegen
