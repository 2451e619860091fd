#include "compile/recompute_phase.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/plan.h"
#include "fuse/fuse.h"
#include "inst/irgen.h"
#include "memory/pass_table.h"
#include "optimize/recompute.h"
#include "optimize/schedule.h"
#include "support/quote.h"
#include "support/stopwatch.h"

namespace aglow {

namespace {

// The phases that follow, as far as they decide on the arena.
Result<int64_t> arenaOf(const Function& function, const Backend& backend) {
  AGLOW_TRY(Program program, generate(function, scheduleNodes(function).order));
  AGLOW_OK(planInstructions(program, backend));
  if (const FusePolicy* policy = backend.fusePolicy()) {
    AGLOW_OK(fuseInstructions(program, *policy));
    AGLOW_OK(planInstructions(program, backend));
  }
  AGLOW_OK(runMemoryPasses(program));
  return program.arenaBytes;
}

// As it will be, but with Saves at the end: what is computed again reads state as it was.
void putInOrder(Function& function) {
  const std::vector<const Node*> order = scheduleNodes(function).order;
  for (const bool saves : {false, true})
    for (const Node* node : order)
      if ((node->op() == Op::Save) == saves) function.move(const_cast<Node*>(node), nullptr);
}

// In steps of a tenth, since the estimate does not know what fusing and sharing save. Ends where nothing helps.
Result<bool> fit(Function& function, const Backend& backend, int64_t bytes) {
  AGLOW_TRY(int64_t arena, arenaOf(function, backend));
  if (arena <= bytes) return false;
  putInOrder(function);
  for (int64_t estimate = recompute(function, INT64_MAX); arena > bytes;) {
    const int64_t reached = recompute(function, std::min(estimate - estimate / 10, estimate - 1));
    if (reached >= estimate) break;
    estimate = reached;
    AGLOW_TRY(arena, arenaOf(function, backend));
  }
  return true;
}

}  // namespace

Status checkArena(std::span<const Program> programs, int64_t bytes) {
  const Program* largest = nullptr;
  for (const Program& program : programs)
    if (program.placed() && program.arenaBytes > (largest == nullptr ? bytes : largest->arenaBytes)) largest = &program;
  if (largest == nullptr) return {};
  return Error{.code = Code::TooLarge,
               .message = fmt::format("the intermediate results of function {} take at least {} bytes, even if values "
                                      "are computed again; {} were asked for",
                                      quoted(largest->name), largest->arenaBytes, bytes),
               .where = {},
               .hint = "smaller batches take less; a training step can be cut into several (--accumulate)"};
}

Phase recomputePhase(int64_t bytes) {
  return {.name = "recompute",
          .doc = "values are computed again instead of being kept, as --recompute says",
          .on = Phase::On::Graph,
          .passes = {"recompute"},
          .run = [bytes](PhaseScope& scope) -> Status {
            if (!scope.enabled("recompute")) return {};
            const Stopwatch watch;
            AGLOW_TRY(const bool changed, fit(*scope.function, scope.backend, bytes));
            return scope.passDone("recompute", changed, watch.seconds());
          }};
}

}  // namespace aglow
