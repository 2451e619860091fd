// The driver of the phases: which ones run for a backend and options, on which functions, and who hears of it.
#pragma once

#include <string_view>

#include "backends/phases.h"
#include "compile/compile.h"

namespace aglow {

// From the imported graph to placed programs, for every backend that does not say otherwise.
PhaseList defaultPhases();
// Those that run for this backend and these options.
PhaseList phasesFor(const Backend& backend, const CompileOptions& options);
// All that some backend of this build has, in order, for lists and messages.
PhaseList knownPhases();

// Usage error unless a phase or pass (or "import") of some backend, or of the one at hand, has this name.
Status checkStage(const std::string& name, const PhaseList& phases = knownPhases());
// The same for all names in the options; and the backend they name.
Status checkOptions(const CompileOptions& options);

// Takes the functions of the compilation through the phases, or as far as the options say.
Status runPhases(Compilation& compilation, const CompileOptions& options, Evaluator& evaluator);

}  // namespace aglow
