// What runs tell of the channels of a value: where its numbers differ most between channels, one scale serves none.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace aglow::quant {

struct ChannelProfile {
  int64_t samples = 0;
  std::vector<float> min, max;       // by channel
  std::vector<double> mean, square;  // sums over samples: of the mean of each, and of the mean of squares

  // The values of one sample, [outer, channels, inner]. Means are rounded to a multiple that keeps their sums exact, so
  // that samples add up in any order. What is not finite counts as zero. `also` gets all values once more, piece by
  // piece, while they are near.
  using Also = std::function<void(std::span<const float> piece)>;
  void add(std::span<const float> values, int64_t channels, int64_t inner, const Also& also = {});
  void add(const ChannelProfile& other);

  size_t size() const { return min.size(); }
  // The extent of a channel, zero included.
  double extent(size_t channel) const;
  double meanOf(size_t channel) const;
  double squareOf(size_t channel) const;
  bool operator==(const ChannelProfile&) const = default;
};

}  // namespace aglow::quant
