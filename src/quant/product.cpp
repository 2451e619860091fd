#include "quant/product.h"

#include <algorithm>
#include <cmath>

namespace aglow::quant {

namespace {

Value vectorOf(Builder& b, const std::vector<float>& values) {
  return b.constant(Tensor::of(Type(ElemKind::Float32, Shape({std::ssize(values)})), values));
}

// Weights as integers, in front of the node that takes them.
Value dequantized(Builder& b, Tensor integers, std::string_view name, const std::vector<float>& scales, int axis) {
  return b.dequantizeLinear(b.constant(std::move(integers), name), vectorOf(b, scales), {},
                            {.axis = axis, .to = ElemKind::Float32});
}

// A bias at the scale of the products fits 32 bits with room for the sum: where weights are tiny and the bias is not,
// the scale of the weights is larger than they need.
std::vector<double> leastScales(const Tensor* bias, int64_t channels, double inputScale) {
  constexpr double kMost = 0x1p30;
  if (bias == nullptr) return {};
  std::vector<double> least;
  const auto* values = bias->ref().as<const float>();
  for (int64_t c = 0; c < channels; ++c)
    least.push_back(std::abs(static_cast<double>(values[c])) / (inputScale * kMost));
  return least;
}

}  // namespace

Bias biasOf(Node& product) {
  if (product.op() == Op::Conv) return isConstant(product.input(2)) ? Bias{&product, 2} : Bias{};
  if (product.uses().size() != 1) return {};
  const Use use = product.uses().front();
  if (use.user->op() != Op::Add || use.slot == Use::kPredicate) return {};
  const int other = 1 - use.slot;
  const Value bias = use.user->input(other);
  const int64_t columns = product.type().dim(product.type().rank() - 1);
  const bool fits = isConstant(bias) && bias.rank() > 0 && bias.dim(bias.rank() - 1) == columns &&
                    bias.type().elements() == columns && use.user->type() == product.type();
  return fits ? Bias{use.user, other} : Bias{};
}

std::vector<double> biasErrors(const Node& product, const ChannelProfile& input, const Schema& schema) {
  const bool conv = product.op() == Op::Conv;
  const Tensor& weights = asConstant(product.input(1))->tensor();
  const Shape& shape = weights.type().shape();
  const int64_t outputs = shape[conv ? 0 : 1], inputs = shape[conv ? 1 : 0];
  const int64_t groups = conv ? product.attrs().integer("group") : 1;
  const int64_t inner = conv ? shape.elements() / std::max<int64_t>(outputs * inputs, 1) : 1;
  if (input.samples == 0 || static_cast<int64_t>(input.size()) != inputs * groups) return {};
  const Weights rounded = quantizeWeights(weights, conv ? 0 : 1, schema);
  const auto* exact = weights.ref().as<const float>();
  const auto* integers = rounded.integers.ref().as<const int8_t>();
  const int64_t perGroup = std::max<int64_t>(outputs / groups, 1);
  std::vector<double> errors(static_cast<size_t>(outputs));
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t c = 0; c < inputs; ++c) {
      double error = 0;
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t at = conv ? (o * inputs + c) * inner + i : c * outputs + o;
        error += static_cast<double>(integers[at]) * static_cast<double>(rounded.scales[static_cast<size_t>(o)]) -
                 static_cast<double>(exact[at]);
      }
      errors[static_cast<size_t>(o)] += error * input.meanOf(static_cast<size_t>(o / perGroup * inputs + c));
    }
  return errors;
}

void quantizeProduct(Builder& b, Node& product, const Parameters& input, const Schema& schema) {
  const int axis = product.op() == Op::Conv ? 0 : 1;
  const Constant& weights = *asConstant(product.input(1));
  const int64_t channels = weights.type().dim(axis);
  const Bias bias = biasOf(product);
  const Tensor* biasTensor = bias.node == nullptr ? nullptr : &asConstant(bias.node->input(bias.operand))->tensor();
  const Weights quantized = quantizeWeights(weights.tensor(), axis, schema,
                                            leastScales(biasTensor, channels, static_cast<double>(input.scale)));
  b.before(&product).named(product.name());
  product.setInput(1, dequantized(b, quantized.integers, weights.name(), quantized.scales, axis));
  if (biasTensor == nullptr) return;
  std::vector<float> scales;
  for (const float scale : quantized.scales) scales.push_back(scale * input.scale);
  const Node& old = *bias.node->input(bias.operand).node;
  b.before(bias.node).named(bias.node->name());
  bias.node->setInput(bias.operand,
                      dequantized(b, quantizeBias(*biasTensor, scales), old.name(), scales, old.type().rank() - 1));
}

Value rounded(Builder& b, Value value, const Parameters& parameters) {
  const Value scale = b.scalar(ElemKind::Float32, static_cast<double>(parameters.scale));
  const Value offset = b.scalar(parameters.kind, static_cast<double>(parameters.offset));
  const Value integers = b.quantizeLinear(value, scale, offset, {.axis = 0, .to = parameters.kind});
  return b.dequantizeLinear(integers, scale, offset, {.axis = 0, .to = ElemKind::Float32});
}

}  // namespace aglow::quant
