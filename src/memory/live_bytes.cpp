#include "memory/live_bytes.h"

#include <algorithm>
#include <bit>

namespace aglow {

LiveBytes::LiveBytes(int32_t instrs)
    : size_(static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(std::max(instrs, 1))))),
      added_(static_cast<size_t>(size_) * 2),
      most_(static_cast<size_t>(size_) * 2) {}

void LiveBytes::add(int32_t first, int32_t last, int64_t bytes) {
  if (bytes != 0 && first <= last) add(1, 0, size_ - 1, first, last, bytes);
}

void LiveBytes::add(size_t node, int32_t from, int32_t to, int32_t first, int32_t last, int64_t bytes) {
  if (first <= from && to <= last) {
    added_[node] += bytes;
    most_[node] += bytes;
    return;
  }
  const int32_t middle = from + (to - from) / 2;
  if (first <= middle) add(2 * node, from, middle, first, last, bytes);
  if (last > middle) add(2 * node + 1, middle + 1, to, first, last, bytes);
  most_[node] = added_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
}

}  // namespace aglow
