// Nests as C11 that people can read: the second printer, and the pattern for those of OpenCL C and CUDA.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "codegen/nest/nest.h"

namespace aglow::codegen {

// What the functions use, to stand once before them: <stdint.h> and <math.h>, total integer arithmetic, narrow floats.
std::string cPrelude();
// The same without what C alone has to include: other languages bring the names of types and functions themselves.
std::string_view sharedPrelude();

// int32_t name(void* const* p, int64_t begin, int64_t end): the units begin to end of the nest. p holds the addresses
// of the operands; an epilogue finds what it is given at the address after them.
std::string printC(const nest::Nest& nest, const std::string& name);

// All nests of the programs, as functions nest_0, nest_1 and so on, with what they use.
std::string printC(std::span<const Program> programs);

}  // namespace aglow::codegen
