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
class RowSums {
public:
  RowSums(const float* first, size_t channels)
      : low_(first, first + channels), high_(low_), one_(channels), two_(channels) {}

  void add(std::span<const float> rows) {
    const size_t channels = low_.size();
    for (const float* row = rows.data(); row != rows.data() + rows.size(); row += channels)
      for (size_t c = 0; c < channels; ++c) {
        const float x = row[c];
        low_[c] = x < low_[c] ? x : low_[c];
        high_[c] = x > high_[c] ? x : high_[c];
        one_[c] += static_cast<double>(x);
        two_[c] += static_cast<double>(x) * static_cast<double>(x);
      }
  }
  void addTo(std::vector<Moments>& moments) const {
    for (size_t c = 0; c < moments.size(); ++c) moments[c].add(low_[c], high_[c], one_[c], two_[c]);
  }

private:
  std::vector<float> low_, high_;
  std::vector<double> one_, two_;
};

// Elements that are looked at several times while they are in the nearest cache.
constexpr int64_t kPiece = 4096;

float finite(float x) { return std::isfinite(x) ? x + 0.0f : 0.0f; }
double onGrid(double x) {
  constexpr int kBits = 30;
  return std::isfinite(x) ? std::ldexp(std::nearbyint(std::ldexp(x, kBits)), -kBits) : 0;
}

}  // namespace

void ChannelProfile::add(std::span<const float> values, int64_t channels, int64_t inner, const Also& also) {
  const int64_t plane = channels * inner;
  if (plane == 0 || values.empty()) return;
  const int64_t outer = std::ssize(values) / plane;
  std::vector<Moments> moments(static_cast<size_t>(channels));
  const auto pieces = [&](int64_t begin, int64_t end, int64_t most, const auto& use) {
    for (; begin < end; begin += most) {
      const auto count = static_cast<size_t>(std::min(most, end - begin));
      const std::span<const float> piece = values.subspan(static_cast<size_t>(begin), count);
      use(piece);
      if (also) also(piece);
    }
  };
  if (inner == 1) {
    RowSums sums(values.data(), moments.size());
    pieces(0, outer * plane, std::max<int64_t>(kPiece / channels, 1) * channels, [&](auto rows) { sums.add(rows); });
    sums.addTo(moments);
  } else {
    for (int64_t i = 0; i < outer * channels; ++i)
      pieces(i * inner, (i + 1) * inner, kPiece,
             [&](auto run) { addRun(moments[static_cast<size_t>(i % channels)], run.data(), std::ssize(run)); });
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
