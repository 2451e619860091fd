// Which convolutions are done on blocked channels, and as which target operator.
#pragma once

#include "backends/cpu/layout/blocked_ops.h"
#include "rewrite/pass.h"

#include <optional>

namespace aglow {

enum class ConvForm : uint8_t {
  None,            // stays as it is
  Planar,          // BlockedConv that reads the image as it is
  Direct,          // BlockedConv
  Winograd,        // WinogradConv
  Depthwise,       // DepthwiseConv, of groups that fill no block
  Bytes,           // NarrowConv
  FewBytes,        // NarrowConv of an image with few channels
  DepthwiseBytes,  // ByteDepthwiseConv
  Halves,          // NarrowConv of bf16
  Taps,            // TapProducts: the image and the filter are maps, with batch and channels exchanged
  PlanarTaps,      // TapProducts that reads the image as it is
  Last,            // ChannelsLastConv, where all channels are one block
  PlanarLast,      // ChannelsLastConv that reads the image as it is
};

// Whether the image is read as it is, in planes.
inline bool readsPlanes(ConvForm form) {
  return form == ConvForm::Planar || form == ConvForm::FewBytes || form == ConvForm::PlanarTaps ||
         form == ConvForm::PlanarLast;
}
// Whether the result is a filter, which has no blocks.
inline bool givesFilter(ConvForm form) { return form == ConvForm::Taps || form == ConvForm::PlanarTaps; }

// What may be chosen among.
struct ConvForms {
  bool winograd = true;
  bool halves = false;  // bf16
  bool matrix = false;  // bf16 on matrix registers
};
ConvForm convFormOf(Node& node, const Blocks& blocks, const ConvForms& forms);

// What stays undone of a convolution that is left planar, as elements that are moved; none: it must not be.
std::optional<int64_t> gainOf(const Node& conv, ConvForm form, const Blocks& blocks);

// The value that a convolution in this form reads: its operand, or the bytes that this is made of.
Value imageOf(Node& node, ConvForm form);

// Of a form that gives a filter: the map that stands for the filter, and the result with the map's channels first, as
// panels lie. The node itself has the image's first.
Value mapOf(Node& node);
Value tapProducts(Node& node, ConvForm form, BlockSource& source);
// Whether a node exchanges batch and channels, and does nothing else.
bool exchangesChannels(const Node& node);

// The result of the convolution in blocks.
Value blockedConv(Node& node, ConvForm form, BlockSource& source);

}  // namespace aglow
