// The phases of the pipeline between import and backend, and the list of them, which a backend changes by name.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuse/policy.h"
#include "graph/evaluator.h"
#include "graph/module.h"
#include "inst/program.h"
#include "rewrite/pipeline.h"

namespace aglow {

class Backend;

// What a phase sees: one function of the graph or one program, and the observer of its passes.
class PhaseScope {
public:
  PhaseScope(const Backend& made, Evaluator& folding) : backend(made), evaluator(folding) {}
  virtual ~PhaseScope() = default;

  const Backend& backend;
  Evaluator& evaluator;
  Function* function = nullptr;  // of phases on the graph
  Program* program = nullptr;    // of phases on instructions
  bool stopped = false;          // at the pass or phase that was asked for

  // Names of passes and rules that are switched off.
  virtual const std::set<std::string, std::less<>>& disabled() const = 0;
  // Whether a pass may run: it is not disabled, and the pipeline goes on.
  bool enabled(std::string_view pass) const { return !stopped && disabled().find(pass) == disabled().end(); }
  // To be called after every pass.
  virtual Status passDone(std::string_view pass, bool changed, double seconds) = 0;
  virtual void countRule(const std::string& name, int64_t times) = 0;
  // The program of the function at hand, from the phase that makes it.
  virtual void emit(Program made) = 0;
};

struct Phase {
  enum class On : uint8_t { Graph, Instructions };

  std::string name;
  std::string doc;
  On on = On::Graph;
  std::vector<std::string> passes;  // by name, in order
  std::function<Status(PhaseScope&)> run;
};

// Phases in the order in which they run. A name that is not there is a fault of the compiler.
class PhaseList {
public:
  PhaseList() = default;
  explicit PhaseList(std::vector<Phase> phases) : phases_(std::move(phases)) {}

  auto begin() const { return phases_.begin(); }
  auto end() const { return phases_.end(); }
  const Phase* find(std::string_view name) const;

  PhaseList& insertBefore(std::string_view name, Phase phase);
  PhaseList& insertAfter(std::string_view name, Phase phase);
  PhaseList& replace(std::string_view name, Phase phase);
  PhaseList& leaveOut(std::string_view name);

private:
  std::vector<Phase>::iterator at(std::string_view name);

  std::vector<Phase> phases_;
};

// For phases that run passes over the function.
Status runPasses(PhaseScope& scope, const Pipeline& pipeline);
std::vector<std::string> passNames(const Pipeline& pipeline);

// To stand after "irgen", of a backend that chooses between kernels: every instruction that computes gets its plan.
Phase planPhase();

// To stand after "irgen" and "plan": chains of instructions become one loop each. The policy lives as long as the
// phase.
Phase fusePhase(const FusePolicy& policy);

}  // namespace aglow
