// Which convolutions are done on blocked channels, and as which target operator.
#pragma once

#include "backends/cpu/layout/blocked_ops.h"
#include "rewrite/pass.h"

namespace aglow {

enum class ConvForm : uint8_t {
  None,       // stays as it is
  Planar,     // BlockedConv that reads the image as it is
  Direct,     // BlockedConv
  Winograd,   // WinogradConv
  Depthwise,  // DepthwiseConv, of groups that fill no block
};

ConvForm convFormOf(Node& node, const Blocks& blocks, bool winograd);

// The result of the convolution in blocks.
Value blockedConv(Node& node, ConvForm form, BlockSource& source);

}  // namespace aglow
