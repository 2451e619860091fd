#include "quant/noise.h"

#include <algorithm>
#include <cmath>

namespace aglow::quant {

WeightView::WeightView(const Node& product)
    : tensor_(asConstant(product.input(1))->tensor()), conv_(product.op() == Op::Conv) {
  const Shape& shape = tensor_.type().shape();
  outputs = shape[conv_ ? 0 : 1];
  inputs = shape[conv_ ? 1 : 0];
  inner = conv_ ? shape.elements() / std::max<int64_t>(outputs * inputs, 1) : 1;
  groups = conv_ ? product.attrs().integer("group") : 1;
}

Sizes::Sizes(const WeightView& weights)
    : outputs(weights.outputs),
      inputs(weights.inputs),
      inner(weights.inner),
      groups(weights.groups),
      largest(static_cast<size_t>(outputs * inputs)),
      squares(largest.size()) {
  weights.each([&](int64_t o, int64_t c, int64_t i) {
    const auto at = static_cast<size_t>(o * inputs + c);
    const auto weight = static_cast<float>(weights.at(o, c, i));
    largest[at] = std::max(largest[at], std::abs(weight));
    squares[at] += weight * weight;
  });
}

double noiseOf(const Sizes& weights, const ChannelProfile& input, const std::vector<double>& factors) {
  constexpr double kValueLevels = 255, kWeightLevels = 254;
  double range = 0;
  std::vector<double> squares(factors.size()), inputs(factors.size());
  for (size_t c = 0; c < factors.size(); ++c) {
    range = std::max(range, input.extent(c) / factors[c]);
    squares[c] = factors[c] * factors[c];
    inputs[c] = input.squareOf(c) / squares[c] * static_cast<double>(weights.inner);
  }
  double noise = 0;
  const double step = range / kValueLevels;
  for (int64_t o = 0; o < weights.outputs; ++o) {
    const size_t first = weights.first(o), row = static_cast<size_t>(o * weights.inputs);
    double largest = 0, size = 0, sum = 0;
    for (size_t c = 0; c < static_cast<size_t>(weights.inputs); ++c) {
      largest = std::max(largest, static_cast<double>(weights.largest[row + c]) * factors[first + c]);
      size += static_cast<double>(weights.squares[row + c]) * squares[first + c];
      sum += inputs[first + c];
    }
    const double weightStep = 2 * largest / kWeightLevels;
    noise += step * step * size + weightStep * weightStep * sum;
  }
  return noise;
}

}  // namespace aglow::quant
