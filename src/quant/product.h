// A convolution or product in integers: its weights and its bias, and the conversion of a value.
#pragma once

#include "graph/builder.h"
#include "quant/schema.h"

namespace aglow::quant {

// Gives the product weights of i8 and, where it has a constant one, a bias of i32 at the scale of the products, each
// with its DequantizeLinear.
void quantizeProduct(Builder& b, Node& product, const Parameters& input, const Schema& schema);

// The value to integers and back, where the builder stands.
Value rounded(Builder& b, Value value, const Parameters& parameters);

}  // namespace aglow::quant
