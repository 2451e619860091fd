// The sliding window of convolutions and pools as a node describes it.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/op_import.h"

namespace aglow::onnx {

// One entry a spatial axis; pads list all beginnings, then all ends, with auto_pad settled.
struct WindowAttrs {
  std::vector<int64_t> kernel, strides, dilations, pads;
  std::string autoPad;

  size_t axes() const { return kernel.size(); }
  // From the first tap to the end of the last.
  int64_t reach(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
};

// Reads strides, dilations, pads and auto_pad for x of shape [batch, channel, spatial...]. All numbers of the result
// are small enough that sums and products of two of them fit.
WindowAttrs readWindow(const OpImport& c, Value x, std::vector<int64_t> kernel);
// The same with the kernel that attribute kernel_shape names.
WindowAttrs readPoolWindow(const OpImport& c, Value x);
// The spatial part of a filter's shape, checked against kernel_shape if it is given.
std::vector<int64_t> kernelOf(const OpImport& c, Value x, Value filter);

// Whether the extra element of an odd padding lies at the beginning or at the end.
struct PadPair {
  int64_t before, after;
};
PadPair splitPadding(int64_t total, bool extraAtEnd);

}  // namespace aglow::onnx
