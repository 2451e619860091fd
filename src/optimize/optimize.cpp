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

Pass composePass() {
  static const RuleSet rules(rulesOf(RuleTheme::Stage::Compose));
  return rewritePass("compose", "Finds composites in the parts that exporters write them as.", rules);
}

}  // namespace

Pipeline optimizePipeline() {
  Pipeline pipeline("optimize");
  pipeline.addGroup({deadCodePass(), sharingPass(), composePass(), simplifyPass()}).add(deadCodePass());
  return pipeline;
}

Pipeline predicatePipeline() {
  Pipeline pipeline("predicate");
  pipeline.add(carryPredicatesPass());
  return pipeline;
}

Pipeline loweredPipeline() {
  Pipeline pipeline("optimize-lowered");
  pipeline.addGroup({deadCodePass(), sharingPass(), simplifyPass()}).add(deadCodePass());
  return pipeline;
}

}  // namespace aglow
