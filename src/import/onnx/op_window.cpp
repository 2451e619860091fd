#include "import/onnx/op_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "import/onnx/op_support.h"
#include "support/sizes.h"

namespace aglow::onnx {

namespace {

// Reads a list with `count` entries, each from `least` up to what 32 bits hold.
std::vector<int64_t> listOf(const OpImport& c, std::string_view name, size_t count, int64_t least, int64_t otherwise) {
  std::vector<int64_t> list = c.ints(name);
  if (list.empty()) list.assign(count, otherwise);
  if (list.size() != count)
    fail(Code::BadNode, fmt::format("expected {} entries in '{}', got {}", count, name, listText(list)));
  for (const int64_t entry : list)
    if (entry < least || entry > std::numeric_limits<int32_t>::max())
      fail(Code::BadNode,
           fmt::format("expected entries of '{}' to be at least {} and of 32 bits, got {}", name, least, entry));
  return list;
}

void checkImage(Value x) {
  if (x.rank() < 3) fail(Code::BadNode, fmt::format("expected [batch, channel, spatial...], got {}", x.type().text()));
  for (int axis = 2; axis < x.rank(); ++axis)
    if (x.dim(axis) > std::numeric_limits<int32_t>::max())
      fail(Code::TooLarge,
           fmt::format("spatial extents of more than 32 bits are not supported, got {}", x.type().text()));
}

}  // namespace

PadPair splitPadding(int64_t total, bool extraAtEnd) {
  const int64_t half = total / 2;
  return extraAtEnd ? PadPair{half, total - half} : PadPair{total - half, half};
}

WindowAttrs readWindow(const OpImport& c, Value x, std::vector<int64_t> kernel) {
  checkImage(x);
  const size_t axes = kernel.size();
  WindowAttrs window{.kernel = std::move(kernel),
                     .strides = listOf(c, "strides", axes, 1, 1),
                     .dilations = listOf(c, "dilations", axes, 1, 1),
                     .pads = listOf(c, "pads", 2 * axes, 0, 0),
                     .autoPad = c.word("auto_pad", "NOTSET")};
  if (window.autoPad == "NOTSET" || window.autoPad.empty()) return window;
  const bool upper = window.autoPad == "SAME_UPPER";
  if (!upper && window.autoPad != "SAME_LOWER" && window.autoPad != "VALID")
    fail(Code::BadNode,
         fmt::format("expected 'auto_pad' NOTSET, SAME_UPPER, SAME_LOWER or VALID, got '{}'", window.autoPad));
  window.pads.assign(2 * axes, 0);
  if (window.autoPad == "VALID") return window;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t extent = x.dim(static_cast<int>(i) + 2), stride = window.strides[i];
    const int64_t covered = (ceilDiv(extent, stride) - 1) * stride + window.reach(i);
    const PadPair pair = splitPadding(std::max<int64_t>(covered - extent, 0), upper);
    window.pads[i] = pair.before;
    window.pads[axes + i] = pair.after;
  }
  return window;
}

WindowAttrs readPoolWindow(const OpImport& c, Value x) {
  checkImage(x);
  if (!c.hasAttr("kernel_shape")) fail(Code::BadNode, "attribute 'kernel_shape' is required but missing");
  return readWindow(c, x, listOf(c, "kernel_shape", static_cast<size_t>(x.rank()) - 2, 1, 1));
}

std::vector<int64_t> kernelOf(const OpImport& c, Value x, Value filter) {
  checkImage(x);
  checkImage(filter);
  if (filter.rank() != x.rank())
    fail(Code::BadNode,
         fmt::format("expected as many axes in the filter as in {}, got {}", x.type().text(), filter.type().text()));
  const std::vector<int64_t>& dims = filter.shape().dims();
  std::vector<int64_t> kernel(dims.begin() + 2, dims.end());
  if (c.hasAttr("kernel_shape") && c.ints("kernel_shape") != kernel)
    fail(Code::BadNode, fmt::format("expected 'kernel_shape' as in the filter {}, got {}", filter.type().text(),
                                    listText(c.ints("kernel_shape"))));
  return kernel;
}

}  // namespace aglow::onnx
