#include "quant/channels.h"

#include <algorithm>

namespace aglow::quant {

void ChannelProfile::add(const ChannelProfile& other) {
  if (samples == 0) {
    *this = other;
    return;
  }
  if (other.samples == 0 || other.size() != size()) return;
  samples += other.samples;
  for (size_t c = 0; c < size(); ++c) {
    min[c] = std::min(min[c], other.min[c]);
    max[c] = std::max(max[c], other.max[c]);
    mean[c] += other.mean[c];
    square[c] += other.square[c];
  }
}

double ChannelProfile::extent(size_t channel) const {
  return std::max(static_cast<double>(max[channel]), 0.0) - std::min(static_cast<double>(min[channel]), 0.0);
}
double ChannelProfile::meanOf(size_t channel) const { return mean[channel] / static_cast<double>(samples); }
double ChannelProfile::squareOf(size_t channel) const { return square[channel] / static_cast<double>(samples); }

}  // namespace aglow::quant
