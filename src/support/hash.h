// A fast hash of bytes that is the same on every run and machine. Not for adversaries: keep it out of security.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace aglow {

inline uint64_t mixHash(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

// Chains: the hash so far is the seed of the next piece.
inline uint64_t hashBytes(const void* data, size_t size, uint64_t seed = 0) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = mixHash(seed, size);
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    hash = mixHash(hash, word);
  }
  uint64_t tail = 0;
  if (size > 0) std::memcpy(&tail, bytes, size);
  return mixHash(mixHash(hash, tail), size);
}

}  // namespace aglow
