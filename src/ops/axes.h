// Axes and per-axis lists as attributes hold them, brought to the form that rules, lowerings and kernels compute with.
#pragma once

#include <cstdint>
#include <vector>

namespace aglow {

// Where an attribute may count from the end: the axis from the front. What is out of range stays out of range.
constexpr int64_t axisFromFront(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

// A list with one entry an axis; an empty one stands for the same value everywhere.
inline std::vector<int64_t> filled(const std::vector<int64_t>& list, int count, int64_t value) {
  return list.empty() ? std::vector<int64_t>(static_cast<size_t>(count), value) : list;
}

}  // namespace aglow
