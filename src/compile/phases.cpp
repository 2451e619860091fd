// The map of the compiler: every phase between import and backend, in order. Each pass of a phase is timed, verified,
// switchable and printable by name.
#include "compile/phases.h"

#include <fmt/format.h>

#include <chrono>
#include <unordered_map>

#include "backends/cpu/layout/layout.h"
#include "fuse/fuse.h"
#include "graph/equality.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "lower/lower.h"
#include "memory/plan.h"
#include "optimize/optimize.h"
#include "optimize/rules.h"
#include "optimize/schedule.h"
#include "support/suggest.h"

namespace aglow {

namespace {

class Stopwatch {
public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// ---------------------------------------------------------------- the phases

Status runPipeline(PipelineState& state, const Pipeline& pipeline) {
  PassContext context{.evaluator = state.evaluator, .disabled = state.options.disabled};
  Stopwatch watch;
  PassHooks hooks;
  hooks.before = [&](const Pass&, Function&) -> Status {
    watch = {};
    return {};
  };
  hooks.after = [&](const Pass& pass, Function&, bool changed) -> Result<bool> {
    AGLOW_OK(state.passDone(pass.name, changed, watch.seconds()));
    return !state.stopped;
  };
  AGLOW_OK(pipeline.run(*state.result.function, context, hooks));
  for (const auto& [name, count] : context.statistics) state.result.ruleCounts[name] += count;
  return {};
}

Status optimize(PipelineState& state) { return runPipeline(state, optimizePipeline()); }
Status optimizeCore(PipelineState& state) { return runPipeline(state, loweredPipeline()); }

Status layout(PipelineState& state) {
  std::optional<VectorLayout> vectors = state.backend.vectorLayout();
  if (state.options.lanes > 0) vectors = VectorLayout{.lanes = state.options.lanes};
  return vectors ? runPipeline(state, layoutPipeline(*vectors)) : Status();
}

// Lowering ends with what the backend can do; anything else is said at once, with the backend's reasons.
Status checkSupport(const Function& function, const Backend& backend) {
  std::string refusals;
  for (const auto& node : function.nodes()) {
    if (node->op() == Op::Save) continue;
    const Decision decision = backend.supports(*node);
    if (!decision) refusals += fmt::format("\n  node '{}' ({}): {}", node->name(), node->def().name, decision.reason());
  }
  if (refusals.empty()) return {};
  return Error{.code = Code::UnsupportedFeature,
               .message = fmt::format("backend '{}' cannot compile:{}", backend.name(), refusals)};
}

Status lowerComposites(PipelineState& state) {
  const Stopwatch watch;
  const KeepComposite keep = [&](const Node& node) { return static_cast<bool>(state.backend.supports(node)); };
  AGLOW_TRY(const bool changed, lower(*state.result.function, keep));
  AGLOW_OK(checkSupport(*state.result.function, state.backend));
  return state.passDone("lower-composites", changed, watch.seconds());
}

Status schedule(PipelineState& state) {
  const Stopwatch watch;
  if (!state.enabled("min-peak-memory")) return {};
  Function& function = *state.result.function;
  const std::vector<const Node*> order = scheduleNodes(function).order;
  std::unordered_map<const Node*, Node*> nodes;
  for (const auto& node : function.nodes()) nodes[node.get()] = node.get();
  const auto same = [](const auto& node, const Node* other) { return node.get() == other; };
  const bool changed = !std::equal(function.nodes().begin(), function.nodes().end(), order.begin(), same);
  for (const Node* node : order) function.move(nodes.at(node), nullptr);
  return state.passDone("min-peak-memory", changed, watch.seconds());
}

Status irgen(PipelineState& state) {
  const Stopwatch watch;
  AGLOW_OK(checkSupport(*state.result.function, state.backend));
  AGLOW_TRY(Program program, generate(*state.result.function));
  state.result.program = std::move(program);
  state.result.function = nullptr;
  state.result.module.reset();
  return state.passDone("generate-instructions", true, watch.seconds());
}

Status fuse(PipelineState& state) {
  const FusePolicy* policy = state.backend.fusePolicy();
  if (policy == nullptr && state.options.fuse) policy = &fuseEverything();
  if (policy == nullptr || !state.enabled("fuse")) return {};
  const Stopwatch watch;
  AGLOW_TRY(const bool changed, fuseInstructions(*state.result.program, *policy));
  return state.passDone("fuse", changed, watch.seconds());
}

Status memory(PipelineState& state) {
  Stopwatch watch;
  const bool scratch = addScratch(*state.result.program, state.backend);
  AGLOW_OK(state.passDone("scratch", scratch, watch.seconds()));
  if (state.stopped) return {};
  MemoryOptions options;
  options.before = [&](const MemoryPass& pass) {
    watch = {};
    return state.enabled(pass.name);
  };
  options.after = [&](const MemoryPass& pass, const Program&, bool changed) -> Result<bool> {
    AGLOW_OK(state.passDone(pass.name, changed, watch.seconds()));
    return !state.stopped;
  };
  return planMemory(*state.result.program, options);
}

constexpr Phase kPhases[] = {
    {"optimize", "target-independent rules and passes on the model's own operators", optimize},
    {"lower", "composite operators become core ones, unless the backend keeps them", lowerComposites},
    {"optimize-core", "the rules again, on what lowering left", optimizeCore},
    {"layout", "channels in blocks and weights in panels, where the backend has vectors", layout},
    {"schedule", "the order of nodes that keeps peak memory low", schedule},
    {"irgen", "nodes become instructions over addresses", irgen},
    {"fuse", "chains of instructions become one loop each, where the backend asks for it", fuse, true},
    {"memory", "copies vanish, buffers are shared, and all of them get their place in one arena", memory, true},
};

}  // namespace

std::span<const Phase> phases() { return kPhases; }

const Phase* findPhase(std::string_view name) {
  for (const Phase& phase : kPhases)
    if (phase.name == name) return &phase;
  return nullptr;
}

std::vector<std::string> passNames() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : {optimizePipeline(), loweredPipeline(), layoutPipeline({.lanes = 1})})
    for (const Pass* pass : pipeline.passes()) names.push_back(pass->name);
  for (const char* name : {"lower-composites", "min-peak-memory", "generate-instructions", "fuse", "scratch"})
    names.emplace_back(name);
  for (const MemoryPass& pass : memoryPasses()) names.emplace_back(pass.name);
  return names;
}

// ---------------------------------------------------------------- the state

bool PipelineState::enabled(std::string_view pass) const { return !stopped && !options.disabled.contains(pass); }

// The text form reads back as what was printed.
static Status checkRoundTrip(const Module& module) {
  BlobStore blobs;
  AGLOW_TRY(const std::unique_ptr<Module> again, parseModule(print(module, &blobs), blobs));
  const std::string differs = difference(module, *again);
  if (differs.empty()) return {};
  return Error{.code = Code::BadVerify, .message = "the graph's text reads back as another graph: " + differs};
}

static Status checkRoundTrip(const Program& program) {
  BlobStore blobs;
  AGLOW_TRY(const Program again, parseProgram(print(program, &blobs), blobs));
  if (again == program) return {};
  return Error{.code = Code::BadVerify, .message = "the program's text reads back as another program"};
}

Status PipelineState::verifyNow(std::string_view after) const {
  Status status = result.program ? verify(*result.program) : verify(*result.module);
  if (status.ok() && options.verifyEach)
    status = result.program ? checkRoundTrip(*result.program) : checkRoundTrip(*result.module);
  if (status.ok()) return status;
  return Error(status.error()).at(fmt::format("after {}", after));
}

Status PipelineState::tell(std::string_view pass, bool changed, double seconds) const {
  if (!options.observer) return {};
  return options.observer({.phase = phase,
                           .pass = pass,
                           .changed = changed,
                           .seconds = seconds,
                           .graph = result.program ? nullptr : result.module.get(),
                           .program = result.program ? &*result.program : nullptr});
}

Status PipelineState::passDone(std::string_view pass, bool changed, double seconds) {
  auto& timings = result.timings;
  const auto same = [&](const PassTiming& t) { return t.phase == phase && t.pass == pass; };
  auto it = std::find_if(timings.begin(), timings.end(), same);
  if (it == timings.end())
    it = timings.insert(
        it, {.phase = std::string(phase), .pass = std::string(pass), .runs = 0, .changes = 0, .seconds = 0});
  it->runs += 1;
  it->changes += changed ? 1 : 0;
  it->seconds += seconds;
  if (options.verifyEach && changed) AGLOW_OK(verifyNow(pass));
  if (options.stopAfter == pass) stopped = true;
  return tell(pass, changed, seconds);
}

Status PipelineState::phaseDone(double seconds) {
  AGLOW_OK(verifyNow(phase));
  if (options.stopAfter == phase) stopped = true;
  return tell({}, true, seconds);
}

namespace {

std::vector<std::string> phaseNames() {
  std::vector<std::string> names;
  for (const Phase& phase : kPhases) names.emplace_back(phase.name);
  return names;
}

std::vector<std::string> stageNames() {
  std::vector<std::string> names = phaseNames();
  names.emplace_back("import");
  for (std::string& pass : passNames()) names.push_back(std::move(pass));
  return names;
}

std::vector<std::string> switchNames() {
  std::vector<std::string> names = passNames();
  names.emplace_back(kWinograd);
  for (const RuleTheme& theme : ruleThemes())
    for (const Rule& rule : theme.rules) names.emplace_back(rule.name);
  return names;
}

Status checkName(const std::string& name, const std::vector<std::string>& names, std::string_view what) {
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return {};
  return Error{.code = Code::Usage,
               .message = fmt::format("there is no {} '{}'", what, name),
               .where = {},
               .hint = didYouMean(name, std::vector<std::string_view>(names.begin(), names.end()))};
}

}  // namespace

Status checkStage(const std::string& name) { return checkName(name, stageNames(), "phase or pass"); }

Status checkOptions(const CompileOptions& options) {
  constexpr int64_t kMostLanes = 64;
  if (options.lanes < 0 || options.lanes > kMostLanes)
    return Error{.code = Code::Usage,
                 .message = fmt::format("expected from 0 to {} lanes, got {}", kMostLanes, options.lanes)};
  AGLOW_OK(checkStage(options.stopAfter));
  AGLOW_OK(checkName(options.startFrom, phaseNames(), "phase"));
  for (const std::string& name : options.disabled) AGLOW_OK(checkName(name, switchNames(), "pass or rule"));
  return {};
}

Status runPhases(PipelineState& state) {
  AGLOW_OK(checkOptions(state.options));
  state.phase = "import";
  AGLOW_OK(state.phaseDone(0));
  bool started = state.options.startFrom.empty();
  for (const Phase& phase : kPhases) {
    if (state.stopped) return {};
    started = started || phase.name == state.options.startFrom;
    if (!started) continue;
    if (phase.onProgram != state.result.program.has_value()) {
      if (state.options.startFrom.empty() && state.result.program) continue;  // instructions were loaded as they are
      return Error{.code = Code::Usage,
                   .message = fmt::format("phase '{}' works on {}, but the file holds {}", phase.name,
                                          phase.onProgram ? "instructions" : "a graph",
                                          phase.onProgram ? "a graph" : "instructions")};
    }
    state.phase = phase.name;
    const Stopwatch watch;
    AGLOW_OK(phase.run(state));
    AGLOW_OK(state.phaseDone(watch.seconds()));
  }
  if (state.stopped || state.options.stopAfter.empty()) return {};
  return Error{.code = Code::Usage, .message = fmt::format("'{}' is not reached", state.options.stopAfter)};
}

}  // namespace aglow
