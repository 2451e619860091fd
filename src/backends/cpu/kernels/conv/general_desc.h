// Descriptor of the convolution that serves every kind of elements, any number of axes and filters known only at run
// time.
#pragma once

#include "backends/cpu/kernels/window.h"

namespace aglow::cpu {

// An item is a block of output channels of a group by a block of positions of one image, in this order: image, group,
// channels, positions.
struct ConvDesc {
  int64_t hasBias;
  int64_t groups, channels, depth;  // channels and input channels of a group
  int64_t taps;
  int64_t inputSize, resultSize;  // positions of a channel
  int64_t channelBlocks, positionBlocks;
  Items items;
  WindowDesc window;
};

}  // namespace aglow::cpu
