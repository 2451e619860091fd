// A convolution or product in integers: its weights and its bias, and the conversion of a value.
#pragma once

#include "graph/builder.h"
#include "quant/schema.h"

namespace aglow::quant {

// A constant that is added to each column of a product, and nothing else: where it is, and the node that adds it.
struct Bias {
  Node* node = nullptr;
  int operand = 0;
};
Bias biasOf(Node& product);

// Gives the product weights of i8 and, where it has a constant one, a bias of i32 at the scale of the products, each
// with its DequantizeLinear.
void quantizeProduct(Builder& b, Node& product, const Parameters& input, const Schema& schema);

// What the rounding of a product's weights adds to each of its columns on average, for inputs as the profile has seen
// them; empty where it does not know their channels.
std::vector<double> biasErrors(const Node& product, const ChannelProfile& input, const Schema& schema);

// The value to integers and back, where the builder stands.
Value rounded(Builder& b, Value value, const Parameters& parameters);

}  // namespace aglow::quant
