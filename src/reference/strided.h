// Walks over two memories in step, each with strides of its own, in runs as long as the strides allow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace aglow {

// An extent and how far one step along it goes, in elements.
struct StridedAxis {
  int64_t extent = 1;
  int64_t from = 1;
  int64_t to = 1;
};

// The axes with those joined that continue each other in both memories; never none.
std::vector<StridedAxis> joinedAxes(const std::vector<int64_t>& dims, const std::vector<int64_t>& from,
                                    const std::vector<int64_t>& to);

// Calls f(from, to) with the offsets at which each run along the last axis starts.
template <class F>
void forEachRun(const std::vector<StridedAxis>& axes, F&& f) {
  for (const StridedAxis& axis : axes)
    if (axis.extent == 0) return;
  const size_t outer = axes.size() - 1;
  std::vector<int64_t> index(outer, 0);
  int64_t from = 0;
  int64_t to = 0;
  while (true) {
    f(from, to);
    size_t a = outer;
    for (; a > 0; --a) {
      const StridedAxis& axis = axes[a - 1];
      from += axis.from;
      to += axis.to;
      if (++index[a - 1] < axis.extent) break;
      from -= axis.from * axis.extent;
      to -= axis.to * axis.extent;
      index[a - 1] = 0;
    }
    if (a == 0) return;
  }
}

// Copies elements of some bytes each.
void copyStrided(const std::vector<int64_t>& dims, int elemBytes, const std::byte* from,
                 const std::vector<int64_t>& fromStrides, std::byte* to, const std::vector<int64_t>& toStrides);

}  // namespace aglow
