// Linked code: objects become one block of bytes that runs wherever it lies. Only tables of addresses in it depend on
// the place; all else is mapped from a file as it is, and shared by all processes that do so.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/cpu/code/executable.h"

namespace aglow::codegen {

// Blocks, and their parts with different rights, begin at multiples of this.
inline constexpr int64_t kImagePage = 4096;

// The entries' addresses are found by their order. UnsupportedFeature for objects of other machines than x86-64.
Result<std::string> linkImage(std::span<const std::string> objects, std::span<const std::string> entries);

// Makes a block ready to run where it lies: at the start of a page, in private memory that the owner keeps mapped.
// BadPackage where its tables contradict each other; OtherPackage where it needs a function that this process has not.
Result<LoadedCode> loadImage(std::span<std::byte> block, std::shared_ptr<const void> owner);

}  // namespace aglow::codegen
