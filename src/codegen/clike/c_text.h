// Nests as C functions, one each: the plainest printer, which tests compare with the others.
#pragma once

#include <string>
#include <string_view>

#include "codegen/nest/nest.h"

namespace aglow::codegen {

// What the functions use, to stand once before them: <stdint.h> and <math.h>, total integer arithmetic, narrow floats.
std::string cPrelude();
// The same without what C alone has to include: other languages bring the names of types and functions themselves.
std::string_view sharedPrelude();
// The words for f64 in OpenCL C where a device has none: two f32, of which the second is at most half a unit in the
// last place of the first, stand for their sum. That has 48 bits or more, and the range of f32.
std::string_view pairsPrelude();

// int32_t name(void* const* p, int64_t begin, int64_t end): the units begin to end of the nest. p holds the addresses
// of the operands; an epilogue finds what it is given at the address after them.
std::string printC(const nest::Nest& nest, const std::string& name);

}  // namespace aglow::codegen
