// What generated code may ask of the program around it.
#pragma once

#include <cstdint>

namespace aglow::codegen {

using StepFunction = int32_t(void* const* addresses, int64_t begin, int64_t end);

struct RunTime {
  // Calls step for all units, in parts, from any number of threads; the largest of what the calls give. None: one call.
  int32_t (*parallelFor)(void* context, StepFunction* step, void* const* addresses, int64_t units) = nullptr;
  void* parallelContext = nullptr;
  // Told before (0) and after (1) each instruction, by its number.
  void (*observe)(void* context, int32_t instr, int32_t after) = nullptr;
  void* observeContext = nullptr;
};

// Of what the generated function gives.
inline constexpr int32_t kStatusBits = 4;

}  // namespace aglow::codegen
