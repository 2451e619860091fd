#include "backends/device/layout.h"

#include "backends/cpu/layout/layout.h"
#include "backends/device/narrow_operands.h"
#include "backends/winograd.h"
#include "optimize/passes.h"

namespace aglow::device {

static Pipeline layoutPipeline(const codegen::DeviceShape& shape) {
  Pipeline pipeline("layout");
  // Processors gather words in vectors, and bytes one by one: there, weights of bytes are words from the beginning.
  if (shape.sharesLocal) pipeline.add(narrowOperandsPass());
  pipeline.add(foldWeightsPass(ElemKind::Int32)).add(planarWinogradPass()).add(transposedProductsPass({.lanes = 1}));
  if (shape.multipliesHalves) pipeline.add(blockedLayoutPass({.whole = true}));
  pipeline.add(deadCodePass()).add(sharingPass());
  return pipeline;
}

Phase layoutPhase(const codegen::DeviceShape& shape) {
  return {.name = "layout",
          .doc =
              "operands of bytes as they are, or widened once; filters of 3x3 convolutions transformed ahead of time; "
              "channels of f16 side by side",
          .on = Phase::On::Graph,
          .passes = passNames(layoutPipeline(shape)),
          .run = [shape](PhaseScope& scope) { return runPasses(scope, layoutPipeline(shape)); }};
}

}  // namespace aglow::device
