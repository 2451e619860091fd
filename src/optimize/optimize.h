// The graph optimizer: the pipelines that the compiler runs before and after lowering.
#pragma once

#include "rewrite/pipeline.h"

namespace aglow {

// Recognises, simplifies, shares and removes to a fixed point.
Pipeline optimizePipeline();

// The same, but without rules that would make composites again of what lowering took apart.
Pipeline loweredPipeline();

// What comes after all that rewrites nodes: nodes under a predicate are left as they are.
Pipeline predicatePipeline();

}  // namespace aglow
