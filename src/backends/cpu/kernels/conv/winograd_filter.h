// Winograd's minimal filtering for 3x3 convolutions with stride 1: which tile pays, and the filter in its terms.
#pragma once

#include "tensor/tensor.h"

namespace aglow::cpu {

// The edge of the tile of results to compute at once: 4, 2, or 0 where the direct convolution is better. The result has
// the extents height and width.
int winogradTile(int64_t channels, int64_t outputs, int64_t height, int64_t width);

// [O, C, 3, 3] to [(tile + 2)^2, P, C, panel], P = ceil(O / panel), computed in double precision.
Tensor winogradFilter(const Tensor& filter, int tile, int64_t panel);

}  // namespace aglow::cpu
