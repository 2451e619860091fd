// Kernels in the words of codegen/clike as plain C that people can read.
#pragma once

#include <array>
#include <string>

#include "codegen/clike/launch.h"

namespace aglow::csource {

struct PlainKernel {
  std::string text;
  std::array<bool, 2> takesItem;  // whether it asks for its number along an axis
};

// A function of the numbers of its item, as far as it asks for them, and of the addresses of its operands.
PlainKernel plainKernel(const std::string& text);

}  // namespace aglow::csource
