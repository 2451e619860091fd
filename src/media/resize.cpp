// A filter of triangles, first along rows, then along columns: each new pixel is the weighted mean of the old ones that
// it covers, or of its neighbours where there are more than before.
#include <algorithm>
#include <cmath>

#include "media/preprocess.h"

namespace aglow::media {

namespace {

struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Taps> tapsOf(int64_t from, int64_t to) {
  const double ratio = static_cast<double>(from) / static_cast<double>(to), reach = std::max(ratio, 1.0);
  std::vector<Taps> all(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * ratio;
    const auto begin = std::max<int64_t>(static_cast<int64_t>(center - reach + 0.5), 0);
    const auto end = std::min<int64_t>(static_cast<int64_t>(center + reach + 0.5), from);
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = begin;
    double sum = 0;
    for (int64_t k = begin; k < end; ++k) {
      const double weight = std::max(1 - std::abs(static_cast<double>(k) + 0.5 - center) / reach, 0.0);
      taps.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : taps.weights) weight = static_cast<float>(weight / sum);
  }
  return all;
}

}  // namespace

Image resized(const Image& image, Size to) {
  if (image.width == to.width && image.height == to.height) return image;
  const int64_t channels = image.channels;
  const std::vector<Taps> across = tapsOf(image.width, to.width), down = tapsOf(image.height, to.height);
  std::vector<float> rows(static_cast<size_t>(image.height * to.width * channels));
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < to.width; ++x) {
      const Taps& taps = across[static_cast<size_t>(x)];
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (size_t k = 0; k < taps.weights.size(); ++k)
          sum += taps.weights[k] * static_cast<float>(image.at(y, taps.first + static_cast<int64_t>(k), c));
        rows[static_cast<size_t>((y * to.width + x) * channels + c)] = std::round(sum);
      }
    }
  Image out{.width = to.width, .height = to.height, .channels = channels, .samples = {}};
  out.samples.resize(static_cast<size_t>(to.width * to.height * channels));
  const int64_t row = to.width * channels;
  for (int64_t y = 0; y < to.height; ++y) {
    const Taps& taps = down[static_cast<size_t>(y)];
    for (int64_t i = 0; i < row; ++i) {
      float sum = 0;
      for (size_t k = 0; k < taps.weights.size(); ++k)
        sum += taps.weights[k] * rows[static_cast<size_t>((taps.first + static_cast<int64_t>(k)) * row + i)];
      out.samples[static_cast<size_t>(y * row + i)] = static_cast<uint8_t>(std::clamp(std::round(sum), 0.0f, 255.0f));
    }
  }
  return out;
}

}  // namespace aglow::media
