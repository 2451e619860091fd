// Weights as integers of a few bits with a scale for each block of a column.
#pragma once

#include "tensor/tensor.h"

namespace aglow::quant {

struct Blocks {
  Tensor levels, scales, offsets;  // unsigned integers, [k, n]; [blocks, n], where offsets are all the middle level
};

// Of finite weights [k, n], with `bits` of 4 or 8 and blocks of `block` rows. Each scale is the one with the least
// square error of some; among the levels next to each weight those are taken whose errors add up to nearly nothing
// within a block, so that a common part of the inputs, which is most of what activations leave, is multiplied exactly.
Blocks inBlocks(const Tensor& weights, int bits, int64_t block);

}  // namespace aglow::quant
