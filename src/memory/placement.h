// Placement of buffers with known lifetimes into one arena.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace aglow {

// Alive at times begin <= t < end. Sizes are multiples of the alignment, so that all offsets are.
struct Buffer {
  int64_t bytes = 0;
  int32_t begin = 0;
  int32_t end = 0;
};

struct Placement {
  std::vector<int64_t> offsets;
  int64_t bytes = 0;
  std::string_view strategy;  // the one that won
};

// The most bytes alive at any time: no placement needs less.
int64_t liveBytes(std::span<const Buffer> buffers);

// Tries several strategies and keeps the smallest arena; stops at one that needs no more than the live bytes, or than
// would do. The same buffers always get the same offsets.
Placement placeBuffers(std::span<const Buffer> buffers, int64_t enough = 0);

}  // namespace aglow
