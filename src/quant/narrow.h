// Precisions that need no profile: products of bf16 or f16, and weights of a few bits under activations that stay
// floats.
#pragma once

#include "quant/request.h"

namespace aglow::quant {

// As the request's precision does it, which needs no profile. False where nothing in the function can be changed. Usage
// error where a name to keep is unknown.
Result<bool> narrow(Function& function, const Request& request);

// What products with constant weights read is rounded to bf16 where it is made, and their weights are too; sums,
// normalisations and the outputs of the model stay f32. Products by state, and all of a function that trains, read
// rounded copies: variables and what optimizers make of them stay f32. False where there is no such product.
Result<bool> useHalves(Function& function, const Names& keepFloat);

// Products, and what stands between them and moves, adds or scales values, become those of f16, weights included; sums,
// softmaxes, normalisations and what enters and leaves the model stay f32. False where there is no product.
Result<bool> useFloat16(Function& function, const Names& keepFloat);

// Weights of matrix products become integers of `bits` bits, 4 or 8, with a scale for every 32 rows of each column.
Result<bool> quantizeWeightsOnly(Function& function, const Names& keepFloat, int bits);

}  // namespace aglow::quant
