// The layout phase: convolutions and products with weights known when compiling become target operators on blocked
// channels and packed weights, for backends that compute on vectors.
#pragma once

#include <optional>

#include "backends/phases.h"
#include "backends/vector_layout.h"
#include "rewrite/pipeline.h"

namespace aglow {

// Convolutions, products and pools of narrow floats in f32.
Pass widenFloatsPass();
// Operands of convolutions and products that are known when compiling, as constants: all, or those of one kind.
Pass foldWeightsPass(std::optional<ElemKind> only = {});
// Products by weights that are a little larger than signed bytes, as two.
Pass splitWeightsPass();
// Weights of a few bits in panels, for products of few rows.
Pass packBlocksPass(const VectorLayout& layout);
// Convolutions on blocked channels, and everything between them that can stay in blocks.
Pass blockedLayoutPass(const VectorLayout& layout);
// Constant right sides of matrix products in panels.
Pass packWeightsPass(const VectorLayout& layout);
// Products of bytes by bytes, both known when code runs.
Pass byteProductsPass();

// Products of transposed matrices, as these lie: on the right where vectors make panels of them.
Pass transposedProductsPass(const VectorLayout& layout);
// Computed right sides that several products share, in panels.
Pass packSharedPass(const VectorLayout& layout);

Pipeline layoutPipeline(const VectorLayout& layout);
// To stand after "optimize-core".
Phase layoutPhase(const VectorLayout& layout);

}  // namespace aglow
