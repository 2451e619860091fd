// Where the taps of a sliding window meet the input, with the padding left out: what convolutions and pools loop over.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/window.h"

namespace aglow {

// Neighbouring results along the last axis that one tap serves: result `to + i` reads input `from + i * step`, where
// step is the window's stride along the last axis. Offsets are inside of one channel.
struct WindowRun {
  int64_t tap = 0;
  int64_t to = 0;
  int64_t from = 0;
  int64_t count = 0;
};

// All runs of a channel with the taps in row-major order; extents are the spatial ones.
std::vector<WindowRun> windowRuns(const Window& window, const std::vector<int64_t>& input,
                                  const std::vector<int64_t>& result);

// How many taps of each result's window lie inside of the input or, with padding, of the padded input.
std::vector<int64_t> tapCounts(const Window& window, const std::vector<int64_t>& input,
                               const std::vector<int64_t>& result, bool padding);

// The spatial extents of [batch, channel, spatial...], and their product.
inline std::vector<int64_t> spatialExtents(const Shape& shape) {
  return {shape.dims().begin() + 2, shape.dims().end()};
}
inline int64_t planeSize(const std::vector<int64_t>& extents) {
  int64_t size = 1;
  for (const int64_t extent : extents) size *= extent;
  return size;
}

}  // namespace aglow
