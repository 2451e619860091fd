// What runs tell of the channels of a value: where its numbers differ most between channels, one scale serves none.
#pragma once

#include <cstdint>
#include <vector>

namespace aglow::quant {

struct ChannelProfile {
  int64_t samples = 0;
  std::vector<float> min, max;       // by channel
  std::vector<double> mean, square;  // sums over samples: of the mean of each, and of the mean of squares

  // Means are multiples that keep their sums exact, so that samples add up in any order.
  void add(const ChannelProfile& other);

  size_t size() const { return min.size(); }
  // The extent of a channel, zero included.
  double extent(size_t channel) const;
  double meanOf(size_t channel) const;
  double squareOf(size_t channel) const;
  bool operator==(const ChannelProfile&) const = default;
};

}  // namespace aglow::quant
