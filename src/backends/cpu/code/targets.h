// The machines that code is generated for: those that the tests run. Kernels count on 64-bit addresses, little-endian
// memory and Linux's conventions, and those on the instructions named.
#pragma once

#include <span>
#include <string_view>

namespace aglow::codegen {

struct TestedTarget {
  std::string_view triple;
  std::string_view plainCpu;                // by LLVM's name
  std::span<const std::string_view> needs;  // instructions, by LLVM's names

  std::string_view architecture() const { return triple.substr(0, triple.find('-')); }
};
std::span<const TestedTarget> testedTargets();

}  // namespace aglow::codegen
