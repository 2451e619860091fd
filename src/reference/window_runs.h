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

// Adds to the results of one channel its input times the weight of each tap.
template <class D>
void addTaps(const std::vector<WindowRun>& runs, int64_t step, const D* weights, const D* __restrict input,
             D* __restrict result) {
  for (const WindowRun& run : runs) {
    const D weight = weights[run.tap];
    const D* x = input + run.from;
    D* y = result + run.to;
    if (step == 1) {
      for (int64_t i = 0; i < run.count; ++i) y[i] += weight * x[i];
    } else {
      for (int64_t i = 0; i < run.count; ++i) y[i] += weight * x[i * step];
    }
  }
}

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
