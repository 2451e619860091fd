#include "quant/blocks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "support/sizes.h"

namespace aglow::quant {

namespace {

// One block of one column.
class Block {
public:
  Block(int bits, int64_t rows) : middle_(std::ldexp(1.0f, bits - 1)), few_(bits < 8) {
    values_.reserve(static_cast<size_t>(rows));
  }

  void clear() { values_.clear(); }
  void add(float value) { values_.push_back(value); }

  // One level more lies below the middle than above it: the end that is further from zero gets it, by the scale's sign.
  float scale() const {
    const auto [low, high] = std::minmax_element(values_.begin(), values_.end());
    const float below = std::max(-*low, 0.0f), above = std::max(*high, 0.0f);
    const float whole = std::max(std::max(below, above) / middle_, std::min(below, above) / (middle_ - 1));
    // Zeros alone, and numbers so small that their scale is none, become zeros, whatever rounding a sum has.
    if (!std::isnormal(whole)) return 0;
    const float sign = above > below ? -1.0f : 1.0f;
    if (!few_) return sign * whole;
    float best = sign * whole, least = squaredError(best);
    for (const float share : {0.95f, 0.9f, 0.85f, 0.8f, 0.75f}) {
      const float scale = sign * whole * share, error = std::isnormal(scale) ? squaredError(scale) : least;
      if (error >= least) continue;
      least = error;
      best = scale;
    }
    return best;
  }

  // The levels of all values, less the middle one.
  std::vector<float> levels(float scale) const {
    std::vector<float> levels(values_.size()), errors(values_.size());
    if (scale == 0) return levels;
    for (size_t i = 0; i < values_.size(); ++i) {
      levels[i] = level(values_[i] / scale);
      errors[i] = levels[i] - values_[i] / scale;
    }
    balance(levels, errors);
    return levels;
  }

private:
  float level(float at) const { return std::clamp(std::nearbyint(at), -middle_, middle_ - 1); }
  float squaredError(float scale) const {
    float sum = 0;
    for (const float value : values_) {
      const float error = level(value / scale) * scale - value;
      sum += error * error;
    }
    return sum;
  }

  // Those that are nearest to their other level take it, until the errors add up to half a level at most.
  void balance(std::span<float> levels, std::span<const float> errors) const {
    const float sum = std::accumulate(errors.begin(), errors.end(), 0.0f), sign = sum > 0 ? 1.0f : -1.0f;
    const auto count = std::min(static_cast<size_t>(std::nearbyint(std::abs(sum))), levels.size());
    if (count == 0) return;
    std::vector<size_t> order(levels.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto first = [&](size_t a, size_t b) {
      return errors[a] == errors[b] ? a < b : errors[a] * sign > errors[b] * sign;
    };
    std::sort(order.begin(), order.end(), first);
    for (size_t i = 0; i < count; ++i) {
      const size_t at = order[i];
      // Beyond the outermost levels a value has no other one.
      const float error = errors[at] * sign, other = levels[at] - sign;
      if (error > 0 && error <= 0.5f && other >= -middle_ && other < middle_) levels[at] = other;
    }
  }

  float middle_;
  bool few_;  // levels, so that a smaller range may err less
  std::vector<float> values_;
};

}  // namespace

Blocks inBlocks(const Tensor& weights, int bits, int64_t block) {
  const int64_t k = weights.type().dim(0), n = weights.type().dim(1), blocks = ceilDiv(k, block);
  const int64_t middle = int64_t{1} << (bits - 1);
  const auto* from = weights.ref().as<const float>();
  std::vector<int64_t> levels(static_cast<size_t>(k * n));
  std::vector<double> scales(static_cast<size_t>(blocks * n));
  Block one(bits, block);
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t first = b * block, last = std::min(first + block, k);
      one.clear();
      for (int64_t c = first; c < last; ++c) one.add(from[c * n + j]);
      const float scale = one.scale();
      scales[static_cast<size_t>(b * n + j)] = double{scale};
      const std::vector<float> chosen = one.levels(scale);
      for (int64_t c = first; c < last; ++c)
        levels[static_cast<size_t>(c * n + j)] = middle + static_cast<int64_t>(chosen[static_cast<size_t>(c - first)]);
    }
  const ElemKind kind = bits == 4 ? ElemKind::UInt4 : ElemKind::UInt8;
  const Shape shape{blocks, n};
  return {
      .levels = Tensor::fromInts(Type(kind, weights.type().shape()), levels),
      .scales = Tensor::fromDoubles(Type(ElemKind::Float32, shape), scales),
      .offsets = Tensor::fromInts(Type(kind, shape), std::vector<int64_t>(static_cast<size_t>(blocks * n), middle))};
}

}  // namespace aglow::quant
