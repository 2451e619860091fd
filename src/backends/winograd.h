// Winograd's minimal filtering for 3x3 convolutions with stride 1: which tile pays, the filter in its terms, and the
// pass for backends whose channels lie as the model has them.
#pragma once

#include "backends/phases.h"
#include "tensor/tensor.h"

namespace aglow {

// The edge of the tile of results to compute at once: 4, 2, or 0 where the direct convolution is better. The result has
// the extents height and width.
int winogradTile(int64_t channels, int64_t outputs, int64_t height, int64_t width);

// [O, C, 3, 3] to [(tile + 2)^2, P, C, panel], P = ceil(O / panel), computed in double precision.
Tensor winogradFilter(const Tensor& filter, int tile, int64_t panel);

// What switches it off, in any backend.
inline constexpr std::string_view kWinograd = "winograd";

// Convolutions by constant filters that are worth it become WinogradConv of planar images.
Pass planarWinogradPass();

}  // namespace aglow
