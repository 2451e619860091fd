#include "backends/phases.h"

#include <algorithm>

#include "backends/plan.h"
#include "fuse/fuse.h"
#include "support/stopwatch.h"

namespace aglow {

const Phase* PhaseList::find(std::string_view name) const {
  const auto it = std::find_if(begin(), end(), [&](const Phase& phase) { return phase.name == name; });
  return it == end() ? nullptr : &*it;
}

std::vector<Phase>::iterator PhaseList::at(std::string_view name) {
  const auto it = std::find_if(phases_.begin(), phases_.end(), [&](const Phase& phase) { return phase.name == name; });
  AGLOW_CHECK(it != phases_.end(), "there is no phase '" + std::string(name) + "' to change");
  return it;
}

PhaseList& PhaseList::insertBefore(std::string_view name, Phase phase) {
  phases_.insert(at(name), std::move(phase));
  return *this;
}

PhaseList& PhaseList::insertAfter(std::string_view name, Phase phase) {
  phases_.insert(std::next(at(name)), std::move(phase));
  return *this;
}

PhaseList& PhaseList::replace(std::string_view name, Phase phase) {
  *at(name) = std::move(phase);
  return *this;
}

PhaseList& PhaseList::leaveOut(std::string_view name) {
  phases_.erase(at(name));
  return *this;
}

Status runPasses(PhaseScope& scope, const Pipeline& pipeline) {
  PassContext context{.evaluator = scope.evaluator, .disabled = scope.disabled()};
  Stopwatch watch;
  PassHooks hooks;
  hooks.before = [&](const Pass&, Function&) -> Status {
    watch = {};
    return {};
  };
  hooks.after = [&](const Pass& pass, Function&, bool changed) -> Result<bool> {
    AGLOW_OK(scope.passDone(pass.name, changed, watch.seconds()));
    return !scope.stopped;
  };
  AGLOW_OK(pipeline.run(*scope.function, context, hooks));
  for (const auto& [name, count] : context.statistics) scope.countRule(name, count);
  return {};
}

std::vector<std::string> passNames(const Pipeline& pipeline) {
  std::vector<std::string> names;
  for (const Pass* pass : pipeline.passes()) names.push_back(pass->name);
  return names;
}

Phase planPhase() {
  return {.name = "plan",
          .doc = "every instruction gets its kernel",
          .on = Phase::On::Instructions,
          .passes = {"choose-kernels"},
          .run = [](PhaseScope& scope) -> Status {
            const Stopwatch watch;
            AGLOW_OK(planInstructions(*scope.program, scope.backend));
            return scope.passDone("choose-kernels", true, watch.seconds());
          }};
}

// What is fused with a kernel runs by the kernel's plan; loops that become one have a plan of their own.
Phase fusePhase(const FusePolicy& policy) {
  return {.name = "fuse",
          .doc = "chains of instructions become one loop each",
          .on = Phase::On::Instructions,
          .passes = {"fuse"},
          .run = [&policy](PhaseScope& scope) -> Status {
            if (!scope.enabled("fuse")) return {};
            const Stopwatch watch;
            AGLOW_TRY(const bool changed, fuseInstructions(*scope.program, policy));
            AGLOW_OK(planInstructions(*scope.program, scope.backend));
            return scope.passDone("fuse", changed, watch.seconds());
          }};
}

}  // namespace aglow
