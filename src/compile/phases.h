// The phases of the pipeline and what they work on.
#pragma once

#include <span>
#include <string_view>

#include "compile/compile.h"

namespace aglow {

// A compilation under way. Phases report each pass; the state verifies, keeps time, tells the observer and stops.
struct PipelineState {
  const CompileOptions& options;
  const Backend& backend;
  Compilation& result;
  Evaluator& evaluator;
  std::string_view phase = {};
  bool stopped = false;  // at the pass or phase that was asked for

  // Whether a pass may run: it is not disabled, and the pipeline goes on.
  bool enabled(std::string_view pass) const;
  Status passDone(std::string_view pass, bool changed, double seconds);
  Status phaseDone(double seconds);

private:
  Status verifyNow(std::string_view after) const;
  Status tell(std::string_view pass, bool changed, double seconds) const;
};

struct Phase {
  std::string_view name;
  std::string_view doc;
  Status (*run)(PipelineState&);
  bool onProgram = false;  // works on instructions; before, on the graph
};

// From the imported graph to a placed program.
std::span<const Phase> phases();
const Phase* findPhase(std::string_view name);
// Every pass of every phase, for messages.
std::vector<std::string> passNames();
// Usage error unless a phase or pass (or "import") has this name.
Status checkStage(const std::string& name);
// The same for all names in the options.
Status checkOptions(const CompileOptions& options);

Status runPhases(PipelineState& state);

}  // namespace aglow
