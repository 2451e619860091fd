// How many bytes are alive at every instruction, while lifetimes change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace aglow {

class LiveBytes {
public:
  explicit LiveBytes(int32_t instrs);

  // From instruction first to last, both included; nothing when last lies before first.
  void add(int32_t first, int32_t last, int64_t bytes);
  int64_t peak() const { return most_[1]; }

private:
  void add(size_t node, int32_t from, int32_t to, int32_t first, int32_t last, int64_t bytes);

  int32_t size_;                // a power of two
  std::vector<int64_t> added_;  // a tree over the instructions: to all of a node's
  std::vector<int64_t> most_;   // below a node, with its own
};

}  // namespace aglow
