// What integers are predicted to do to the results of a product, from its weights and what a profile says of the
// channels of its input.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/module.h"
#include "quant/channels.h"

namespace aglow::quant {

// The weights of a product as [outputs, inputs, inner], whichever way they lie; of a convolution with groups, `inputs`
// are those of one group.
class WeightView {
public:
  explicit WeightView(const Node& product);

  int64_t outputs, inputs, inner, groups;

  int64_t channels() const { return inputs * groups; }
  // Of the input channel that weights [output, input] are for.
  size_t channelOf(int64_t output, int64_t input) const {
    return static_cast<size_t>(output / std::max<int64_t>(outputs / groups, 1) * inputs + input);
  }
  int64_t offset(int64_t output, int64_t input, int64_t i) const {
    return conv_ ? (output * inputs + input) * inner + i : input * outputs + output;
  }
  double at(int64_t output, int64_t input, int64_t i) const {
    return static_cast<double>(tensor_.ref().as<const float>()[offset(output, input, i)]);
  }

  template <class F>
  void each(const F& use) const {
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t c = 0; c < inputs; ++c)
        for (int64_t i = 0; i < inner; ++i) use(o, c, i);
  }

  // The same with each element times a factor.
  template <class F>
  Tensor times(const F& factor) const {
    Tensor made(tensor_.type());
    auto* values = reinterpret_cast<float*>(made.mutableData());
    each([&](int64_t o, int64_t c, int64_t i) {
      values[offset(o, c, i)] = static_cast<float>(at(o, c, i) * factor(o, c));
    });
    return made;
  }

private:
  Tensor tensor_;
  bool conv_;
};

// The weights of a product as far as their noise depends on them: by output and input channel.
struct Sizes {
  int64_t outputs, inputs, inner, groups;
  std::vector<float> largest, squares;

  explicit Sizes(const WeightView& weights);
  // The first input channel of an output.
  size_t first(int64_t output) const {
    return static_cast<size_t>(output / std::max<int64_t>(outputs / groups, 1) * inputs);
  }
  size_t channels() const { return static_cast<size_t>(inputs * groups); }
};

// What integers add to the results of a product whose input channels are divided by factors: the rounding of its input,
// which has one scale, by the size of the weights; and the rounding of the weights, which have a scale for each output,
// by the size of the input.
double noiseOf(const Sizes& weights, const ChannelProfile& input, const std::vector<double>& factors);

}  // namespace aglow::quant
