#include "backends/csource/csource.h"

namespace aglow {

// Tiles are four vectors wide. gcc unrolls loops of up to 16 steps before it looks for vectors, and then finds none.
CSourceBackend::CSourceBackend()
    : rules_({.groupItems = 1, .localBytes = 2 * kStackBytes, .vectorFloats = 8, .vectors = false}) {}

void CSourceBackend::changePhases(PhaseList& phases) const {
  phases.insertAfter("irgen", planPhase());
  phases.insertAfter("plan", fusePhase(rules_.fusing()));
}

Result<std::unique_ptr<Executable>> CSourceBackend::compile(std::vector<Program>, const BackendOptions&) const {
  return Error{.code = Code::UnsupportedFeature,
               .message = "backend 'c' writes source for a C compiler, and runs nothing itself",
               .where = {},
               .hint = "aglow compile MODEL -o DIR --emit c"};
}

}  // namespace aglow
