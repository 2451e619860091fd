// Large constants that are read slice by slice, as those of embeddings: a quarter of their bytes.
#pragma once

#include <span>

#include "graph/builder.h"
#include "quant/schema.h"

namespace aglow::quant {

// Each Gather reads integers, and a scale for each slice beside them; what it gives is floats as before. Constants that
// are not finite stay as they are.
void quantizeTables(Builder& b, std::span<Node* const> gathers, const Schema& schema);

}  // namespace aglow::quant
