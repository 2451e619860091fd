// The lines of elements along one axis of a tensor.
#pragma once

#include <cstdint>

#include "tensor/type.h"

namespace aglow {

struct AxisLines {
  AxisLines(const Shape& shape, int64_t axis) : extent(shape[static_cast<int>(axis)]) {
    for (int a = 0; a < shape.rank(); ++a) {
      if (a < axis) outer *= shape[a];
      if (a > axis) stride *= shape[a];
    }
  }

  // Calls f(first, line) for each line in row-major order: where it starts, and its number.
  template <class F>
  void forEach(F&& f) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < stride; ++i) f(o * extent * stride + i, o * stride + i);
  }

  int64_t extent;
  int64_t outer = 1;
  int64_t stride = 1;  // between neighbours, and the number of lines side by side
};

}  // namespace aglow
