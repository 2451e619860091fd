// Kernels in OpenCL C as SPIR-V, by what the machine has for it: clang, with the llvm-spirv of its version, or alone
// from version 20 on.
#pragma once

#include <string>
#include <vector>

#include "support/error.h"

namespace aglow::device {

// What the compiler of the device would say of it.
struct SpirvTarget {
  std::vector<std::string> extensions;  // cl_khr_fp64
  std::vector<std::string> macros;      // FP_FAST_FMAF
};

// A module of SPIR-V 1.0, which all devices take that take any. Device error with what is missing, or with the
// compiler's words.
Result<std::string> spirvOf(const std::string& source, const SpirvTarget& target);

}  // namespace aglow::device
