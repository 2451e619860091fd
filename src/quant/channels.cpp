#include "quant/channels.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace aglow::quant {

namespace {

struct Moments {
  float min = 0, max = 0;
  double sum = 0, squares = 0;
  bool any = false;

  void add(float low, float high, double one, double two) {
    min = any ? std::min(min, low) : low;
    max = any ? std::max(max, high) : high;
    any = true;
    sum += one;
    squares += two;
  }
};

// Lanes side by side, in an order that no machine changes.
void addRun(Moments& moments, const float* values, int64_t count) {
  constexpr int64_t kLanes = 16;
  if (count == 0) return;
  std::array<float, kLanes> low, high, one{}, two{};
  low.fill(values[0]);
  high.fill(values[0]);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const auto at = static_cast<size_t>(lane);
      const float x = values[i + lane];
      low[at] = x < low[at] ? x : low[at];
      high[at] = x > high[at] ? x : high[at];
      one[at] += x;
      two[at] += x * x;
    }
  for (; i < count; ++i) {
    const float x = values[i];
    low[0] = x < low[0] ? x : low[0];
    high[0] = x > high[0] ? x : high[0];
    one[0] += x;
    two[0] += x * x;
  }
  double sum = 0, squares = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    sum += static_cast<double>(one[lane]);
    squares += static_cast<double>(two[lane]);
  }
  moments.add(*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end()), sum, squares);
}

// Channels side by side, row after row.
void addRows(std::vector<Moments>& moments, const float* values, int64_t rows) {
  const size_t channels = moments.size();
  std::vector<float> low(values, values + channels), high = low;
  std::vector<double> one(channels), two(channels);
  for (int64_t row = 0; row < rows; ++row, values += channels)
    for (size_t c = 0; c < channels; ++c) {
      const float x = values[c];
      low[c] = x < low[c] ? x : low[c];
      high[c] = x > high[c] ? x : high[c];
      one[c] += static_cast<double>(x);
      two[c] += static_cast<double>(x) * static_cast<double>(x);
    }
  for (size_t c = 0; c < channels; ++c) moments[c].add(low[c], high[c], one[c], two[c]);
}

float finite(float x) { return std::isfinite(x) ? x + 0.0f : 0.0f; }
double onGrid(double x) {
  constexpr int kBits = 30;
  return std::isfinite(x) ? std::ldexp(std::nearbyint(std::ldexp(x, kBits)), -kBits) : 0;
}

}  // namespace

void ChannelProfile::add(std::span<const float> values, int64_t channels, int64_t inner) {
  const int64_t plane = channels * inner;
  if (plane == 0 || values.empty()) return;
  const int64_t outer = std::ssize(values) / plane;
  std::vector<Moments> moments(static_cast<size_t>(channels));
  if (inner == 1) {
    addRows(moments, values.data(), outer);
  } else {
    for (int64_t i = 0; i < outer * channels; ++i)
      addRun(moments[static_cast<size_t>(i % channels)], values.data() + i * inner, inner);
  }
  ChannelProfile one{.samples = 1};
  const auto count = static_cast<double>(outer * inner);
  for (const Moments& m : moments) {
    one.min.push_back(finite(m.min));
    one.max.push_back(finite(m.max));
    one.mean.push_back(onGrid(m.sum / count));
    one.square.push_back(onGrid(m.squares / count));
  }
  add(one);
}

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
