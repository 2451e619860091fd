// The sliding window of convolutions and pools, one entry a spatial axis, with the attributes' defaults filled in.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/attrs.h"
#include "support/error.h"
#include "tensor/type.h"

namespace aglow {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, before, after;

  int axes() const { return static_cast<int>(kernel.size()); }
  // From the first tap to the end of the last.
  int64_t reach(int axis) const {
    const auto a = static_cast<size_t>(axis);
    return (kernel[a] - 1) * dilations[a] + 1;
  }
};

// Reads strides, pads and dilations, as far as the operator has them. BadNode unless the lists fit the kernel, pads are
// not negative, everything else is positive and nothing is so large that positions would not fit into 63 bits.
Result<Window> windowOf(const Attrs& attrs, std::vector<int64_t> kernel);

// The number of whole windows in x along each spatial axis (x is [batch, channel, spatial...]); BadNode when there is
// none.
Result<std::vector<int64_t>> wholeWindows(const Window& window, const Shape& x);

}  // namespace aglow
