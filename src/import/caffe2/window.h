// The sliding window of convolutions and pools as Caffe2's arguments describe it.
#pragma once

#include <vector>

#include "import/caffe2/args.h"

namespace aglow::caffe2 {

// One entry a spatial axis; pads list all beginnings, then all ends, with legacy_pad settled.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;
  std::vector<int64_t> sizes;  // the result's extents where windows reach past the padded end; else empty
};

// For x of shape [batch, channel, spatial...] and a kernel that is known (a filter's), or, when it is empty, the one
// that the arguments name. All numbers are small enough that sums and products of two of them fit.
Window readWindow(const OpImport& c, Value x, std::vector<int64_t> kernel = {});
// The spatial part of a filter [out, in, spatial...], checked against the arguments if they name a kernel.
std::vector<int64_t> kernelOf(const OpImport& c, Value x, Value filter);
// A list of an entry an axis from "names", or "name" for all axes, or "name_h" and "name_w".
std::vector<int64_t> windowList(const OpImport& c, const std::string& name, size_t axes, int64_t least,
                                int64_t otherwise);
// Pads, maybe negative, from "pads", "pad", or "pad_t", "pad_l", "pad_b" and "pad_r".
std::vector<int64_t> padList(const OpImport& c, size_t axes);

// MaxPool or AveragePool of [batch, channel, spatial...].
Value pooled(const OpImport& c, Value x, bool average);

}  // namespace aglow::caffe2
