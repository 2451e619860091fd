// The order of the passes. What they no longer need is removed here; rules of the optimizer do not run again, since
// those that move transposes would take the layouts apart.
#include "backends/cpu/layout/layout.h"

#include "optimize/passes.h"

namespace aglow {

Pipeline layoutPipeline(const VectorLayout& layout) {
  Pipeline pipeline("layout");
  pipeline.add(widenFloatsPass())
      .add(packBlocksPass(layout))  // before weights become floats
      .add(foldWeightsPass())
      .add(splitWeightsPass())
      .add(packWeightsPass(layout))  // before filters grow: the largest weights pass through memory twice
      .add(transposedProductsPass(layout))
      .add(packSharedPass(layout))
      .add(byteProductsPass())
      .add(blockedLayoutPass(layout))
      .add(deadCodePass())
      .add(sharingPass());
  return pipeline;
}

Phase layoutPhase(const VectorLayout& layout) {
  return {.name = "layout",
          .doc = "channels in blocks and weights in panels, for vectors",
          .on = Phase::On::Graph,
          .passes = passNames(layoutPipeline(layout)),
          .run = [layout](PhaseScope& scope) { return runPasses(scope, layoutPipeline(layout)); }};
}

}  // namespace aglow
