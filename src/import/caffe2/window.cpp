#include "import/caffe2/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "support/sizes.h"

namespace aglow::caffe2 {

namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// Caffe2's LegacyPadding.
enum class LegacyPad : int64_t { NotSet = 0, Valid = 1, Same = 2, CaffePooling = 3 };

void checkEntries(const std::string& name, const std::vector<int64_t>& list, size_t count, int64_t least) {
  if (list.size() != count || std::any_of(list.begin(), list.end(), [&](int64_t e) { return e < least || e > kMost; }))
    fail(Code::BadNode, fmt::format("expected {} numbers of at least {} and of 32 bits in '{}', got {}", count, least,
                                    name, listText(list)));
}

int64_t spatial(Value x, size_t axis) { return x.dim(static_cast<int>(axis) + 2); }

void checkImages(Value x) {
  if (x.rank() < 3) fail(Code::BadNode, fmt::format("expected a batch of images, got {}", x.type().text()));
  for (int axis = 2; axis < x.rank(); ++axis)
    if (x.dim(axis) > kMost)
      fail(Code::TooLarge, fmt::format("extents of more than 32 bits are not supported, got {}", x.type().text()));
}

// As many windows as start within the padded image, the last of which may end beyond it.
void padAsCaffe(Window& window, Value x) {
  const size_t axes = window.kernel.size();
  for (size_t i = 0; i < axes; ++i) {
    const int64_t head = window.pads[i], extent = spatial(x, i), stride = window.strides[i];
    const int64_t room = extent + 2 * head - window.kernel[i];
    if (room < 0) fail(Code::BadNode, fmt::format("the window is larger than the padded {}", x.type().text()));
    int64_t size = ceilDiv(room, stride) + 1;
    if (head > 0 && (size - 1) * stride >= extent + head) --size;
    window.pads[axes + i] = head + stride * (size - (room / stride + 1));
    window.sizes.push_back(size);
  }
}

void padToSame(Window& window, Value x) {
  const size_t axes = window.kernel.size();
  for (size_t i = 0; i < axes; ++i) {
    const int64_t extent = spatial(x, i), stride = window.strides[i];
    const int64_t needed = std::max<int64_t>((ceilDiv(extent, stride) - 1) * stride + window.kernel[i] - extent, 0);
    window.pads[i] = needed / 2;
    window.pads[axes + i] = needed - needed / 2;
  }
}

}  // namespace

std::vector<int64_t> windowList(const OpImport& c, const std::string& name, size_t axes, int64_t least,
                                int64_t otherwise) {
  std::vector<int64_t> list = intsArg(c, name + "s");
  if (list.empty() && c.hasAttr(name))
    list.assign(axes, intArg(c, name));
  else if (list.empty() && (c.hasAttr(name + "_h") || c.hasAttr(name + "_w")))
    list = {intArg(c, name + "_h", otherwise), intArg(c, name + "_w", otherwise)};
  else if (list.empty())
    list.assign(axes, otherwise);
  checkEntries(name, list, axes, least);
  return list;
}

std::vector<int64_t> padList(const OpImport& c, size_t axes) {
  std::vector<int64_t> pads = intsArg(c, "pads");
  constexpr std::string_view kNames[] = {"pad_t", "pad_l", "pad_b", "pad_r"};
  if (pads.empty() && c.hasAttr("pad"))
    pads.assign(2 * axes, intArg(c, "pad"));
  else if (pads.empty() && std::any_of(std::begin(kNames), std::end(kNames), [&](auto n) { return c.hasAttr(n); }))
    for (const std::string_view name : kNames) pads.push_back(intArg(c, name, 0));
  else if (pads.empty())
    pads.assign(2 * axes, 0);
  checkEntries("pad", pads, 2 * axes, -kMost);
  return pads;
}

std::vector<int64_t> kernelOf(const OpImport& c, Value x, Value filter) {
  checkImages(x);
  if (filter.rank() != x.rank())
    fail(Code::BadNode,
         fmt::format("expected as many axes in the filter as in {}, got {}", x.type().text(), filter.type().text()));
  std::vector<int64_t> kernel(filter.shape().dims().begin() + 2, filter.shape().dims().end());
  checkEntries("kernel", kernel, kernel.size(), 1);
  if (const auto named = windowList(c, "kernel", kernel.size(), 0, 0); named.front() != 0 && named != kernel)
    fail(Code::BadNode, fmt::format("expected the kernel {} that the arguments name, got the filter {}",
                                    listText(named), filter.type().text()));
  return kernel;
}

Window readWindow(const OpImport& c, Value x, std::vector<int64_t> kernel) {
  checkImages(x);
  const size_t axes = static_cast<size_t>(x.rank()) - 2;
  if (kernel.empty()) kernel = windowList(c, "kernel", axes, 1, 0);
  Window window{.kernel = std::move(kernel),
                .strides = windowList(c, "stride", axes, 1, 1),
                .dilations = windowList(c, "dilation", axes, 1, 1),
                .pads = padList(c, axes),
                .sizes = {}};
  checkEntries("pad", window.pads, 2 * axes, 0);
  const auto legacy = static_cast<LegacyPad>(intArg(c, "legacy_pad", 0));
  const bool dilated =
      std::any_of(window.dilations.begin(), window.dilations.end(), [](int64_t dilation) { return dilation != 1; });
  if (dilated && legacy != LegacyPad::NotSet && legacy != LegacyPad::Valid)
    fail(Code::BadNode, "expected no dilation with 'legacy_pad'");
  switch (legacy) {
    case LegacyPad::NotSet:
      break;
    case LegacyPad::Valid:
      window.pads.assign(2 * axes, 0);
      break;
    case LegacyPad::Same:
      padToSame(window, x);
      break;
    case LegacyPad::CaffePooling:
      padAsCaffe(window, x);
      break;
    default:
      fail(Code::BadNode, fmt::format("expected 'legacy_pad' from 0 to 3, got {}", static_cast<int64_t>(legacy)));
  }
  return window;
}

Value pooled(const OpImport& c, Value x, bool average) {
  if (flag(c, "global_pooling")) {
    checkImages(x);
    return c.b.reduced(x, average ? "mean" : "max", range(2, x.rank()));
  }
  Window window = readWindow(c, x);
  if (average)
    return c.b.avgPool(x, {.kernel = window.kernel,
                           .strides = window.strides,
                           .pads = window.pads,
                           .dilations = window.dilations,
                           .sizes = window.sizes,
                           .countIncludePad = flag(c, "count_include_pad")});
  return c.b.maxPool(x, {.kernel = window.kernel,
                         .strides = window.strides,
                         .pads = window.pads,
                         .dilations = window.dilations,
                         .sizes = window.sizes});
}

}  // namespace aglow::caffe2
