// Layers that can be switched: beside each product the same in integers, and an input that says which of both counts.
// One program answers what each layer alone does to the outputs of a model.
#pragma once

#include "quant/quantize.h"

namespace aglow::quant {

struct Layer {
  std::string name;
  std::string_view op;
};

struct Switched {
  std::vector<Layer> layers;     // the products that have integers, in the order of the function
  Placeholder* which = nullptr;  // a bool for each: in integers; null where there are none
};
// Integers are as the quantization has them; with biases corrected, or not.
Result<Switched> switchLayers(Function& function, const Quantization& quantization, bool correctBias);

}  // namespace aglow::quant
