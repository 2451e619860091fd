// Windows that slide over the spatial axes of an input.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "ops/window.h"
#include "tensor/type.h"

namespace aglow::codegen {

// One axis: of the window, the input and the result.
struct Along {
  int64_t kernel = 1, stride = 1, dilation = 1, before = 0, input = 1, result = 1;
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
};

struct Sliding {
  static constexpr int64_t kMostBits = 31;  // taps that `tapsInside` has a bit for

  Window window;
  std::vector<int64_t> input, strides;  // spatial
  int64_t plane = 1;                    // elements of a channel of the input
  std::string type;                     // of positions

  // A window of this extent, as attributes have it, on x [images, channels, spatial...].
  Sliding(const Attrs& attrs, std::vector<int64_t> kernel, const Shape& x, const std::string& indexType);

  // Three axes with a result y; images that have fewer have one of 1 in front.
  static constexpr size_t kAxes = 3;
  std::array<Along, kAxes> axes(const Shape& y) const;

  // Whether every place of the result sees the same place of the input alone.
  bool copiesInput(int64_t taps) const;

  std::string position(size_t axis, const std::string& result, const std::string& tap) const;
  std::string inside(size_t axis) const;
  // The element of a channel at q0, q1, ...
  std::string element() const;

  // The same for the result with a number of one y [images, channels, spatial...]: the number of the first element of
  // its window, which may lie before the input, in the channel number `channel` of all; which taps lie inside, a bit
  // each; and how far on from the first element a tap is.
  std::string start(const std::string& channel, const Shape& y, std::string_view number = "column") const;
  std::string tapsInside(const Shape& y, std::string_view number = "column") const;
  std::string on(const std::string& tap) const;

  // Loops over the taps t0, t1, ... of the window of the result at i2, i3, ..., without branches, so that items go side
  // by side: statements on `padded`, whether it lies in the padded input, `inside`, whether in the input itself, and
  // `from`, the element of the channel (any, where it is not inside).
  std::string loops(const std::string& each) const;
};

}  // namespace aglow::codegen
