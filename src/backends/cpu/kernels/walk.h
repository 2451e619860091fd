// What the general kernels share: work dealt out in items, and walks over axes with strides. Descriptors hold these
// structures, so all fields have a fixed width.
#pragma once

#include <stdint.h>

namespace aglow::cpu {

inline constexpr int kMaxAxes = 64;

// A unit does `perUnit` neighbouring items; the last may have fewer.
struct Items {
  int64_t count;
  int64_t perUnit;

  int64_t first(int64_t unit) const { return unit * perUnit < count ? unit * perUnit : count; }
  int64_t units() const { return (count + perUnit - 1) / perUnit; }
};

[[gnu::always_inline]] inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
[[gnu::always_inline]] inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
[[gnu::always_inline]] inline int64_t clamped(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}
// Rounded up, for a positive b.
[[gnu::always_inline]] inline int64_t quotientUp(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

// Axes in row-major order that S memories are walked along in step.
template <int S>
struct Axes {
  struct Axis {
    int64_t extent;
    int64_t step[S];
  };
  int64_t rank;
  Axis axis[kMaxAxes];

  int64_t count() const {
    int64_t product = 1;
    for (int64_t a = 0; a < rank; ++a) product *= axis[a].extent;
    return product;
  }
};

// Where a walk stands: the index along each axis, and the offset in each memory.
template <int S>
struct Walk {
  const Axes<S>& axes;
  int64_t index[kMaxAxes];
  int64_t offset[S];

  [[gnu::always_inline]] Walk(const Axes<S>& over, int64_t position) : axes(over) {
    for (int s = 0; s < S; ++s) offset[s] = 0;
    for (int64_t a = axes.rank - 1; a >= 0; --a) {
      const auto& axis = axes.axis[a];
      index[a] = position % axis.extent;
      position /= axis.extent;
      for (int s = 0; s < S; ++s) offset[s] += index[a] * axis.step[s];
    }
  }

  [[gnu::always_inline]] void next() {
    for (int64_t a = axes.rank - 1; a >= 0; --a) {
      const auto& axis = axes.axis[a];
      for (int s = 0; s < S; ++s) offset[s] += axis.step[s];
      if (++index[a] < axis.extent) return;
      for (int s = 0; s < S; ++s) offset[s] -= axis.step[s] * axis.extent;
      index[a] = 0;
    }
  }
};

}  // namespace aglow::cpu
