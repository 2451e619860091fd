#include "backends/device/layout.h"

#include "backends/cpu/layout/layout.h"
#include "backends/winograd.h"
#include "optimize/passes.h"

namespace aglow::device {

static Pipeline layoutPipeline(bool halves) {
  Pipeline pipeline("layout");
  pipeline.add(planarWinogradPass());
  pipeline.add(transposedProductsPass({.lanes = 1}));
  if (halves) pipeline.add(blockedLayoutPass({.whole = true}));
  pipeline.add(deadCodePass()).add(sharingPass());
  return pipeline;
}

Phase layoutPhase(const codegen::DeviceShape& shape) {
  const bool halves = shape.multipliesHalves;
  return {.name = "layout",
          .doc = "filters of 3x3 convolutions transformed ahead of time; channels of f16 side by side",
          .on = Phase::On::Graph,
          .passes = passNames(layoutPipeline(halves)),
          .run = [halves](PhaseScope& scope) { return runPasses(scope, layoutPipeline(halves)); }};
}

}  // namespace aglow::device
