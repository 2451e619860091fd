// A small source of pseudo-random numbers that gives the same row for a seed on every machine. For samples and tests.
#pragma once

#include <cstdint>
#include <vector>

namespace aglow {

class Rng {
public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // From low to high, both possible.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  // From low to below high.
  double real(double low, double high) { return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53); }
  bool flip() { return (next() & 1) != 0; }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(next() % from.size())];
  }

private:
  uint64_t state_;
};

}  // namespace aglow
