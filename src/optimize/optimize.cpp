// Which rules run together, and in which order.
#include "optimize/optimize.h"

#include "optimize/passes.h"
#include "optimize/rules.h"

namespace aglow {

namespace {

Pass simplifyPass() {
  static const RuleSet rules(rulesOf(RuleTheme::Stage::Simplify));
  return rewritePass("simplify", "Applies the rules that compute the same with less.", rules);
}

}  // namespace

Pipeline optimizePipeline() {
  Pipeline pipeline("optimize");
  pipeline.add(deadCodePass()).addGroup({simplifyPass(), sharingPass(), deadCodePass()});
  return pipeline;
}

Pipeline loweredPipeline() {
  Pipeline pipeline("optimize-lowered");
  pipeline.add(deadCodePass()).addGroup({simplifyPass(), sharingPass(), deadCodePass()});
  return pipeline;
}

}  // namespace aglow
