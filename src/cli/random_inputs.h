// Values for inputs that are not given: always the same for a seed.
#pragma once

#include "cli/engines.h"
#include "support/rng.h"

namespace aglow::cli {

// Floats from -1 to 1; integers 0 or 1: indices of any table, masks, and kinds of tokens at once.
Tensor randomTensor(const Type& type, Rng& rng);

// The values given, and random ones for the other inputs that have no initializer. The options give sizes.
Diagnosed<ModelValues> randomInputs(const onnx::Graph& graph, const ModelValues& given,
                                    const onnx::ImportOptions& sizes, uint64_t seed);

}  // namespace aglow::cli
