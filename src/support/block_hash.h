// The hash that ties weights to the code made for them. Generated code computes it as well as the compiler, so this
// file includes nothing but fixed integers.
#pragma once

#include <stdint.h>

namespace aglow {

// Of whole lines of 64 bytes, on little-endian machines. Eight words advance side by side, so that memory, not
// multiplication, sets the pace.
class LineHash {
public:
  static constexpr int64_t kLine = 64;

  void add(const void* data, int64_t lines) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    lines_ += static_cast<uint64_t>(lines);
    for (int64_t line = 0; line < lines; ++line, bytes += kLine) {
      for (int i = 0; i < 8; ++i) {
        uint64_t word = 0;
        __builtin_memcpy(&word, bytes + 8 * i, 8);
        const uint64_t mixed = (state_[i] ^ word) * kOdd;
        state_[i] = mixed ^ (mixed >> 29);
      }
    }
  }

  uint64_t value() const {
    uint64_t hash = lines_;
    for (const uint64_t word : state_) {
      hash = (hash ^ word) * kOdd;
      hash ^= hash >> 32;
    }
    return hash;
  }

private:
  static constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
  uint64_t state_[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  uint64_t lines_ = 0;
};

}  // namespace aglow
