// The map: every phase between import and backend, in order. Each pass of a phase is timed, verified, switchable and
// printable by name.
#include "compile/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "backends/cpu/code/chains.h"
#include "backends/cpu/layout/layout.h"
#include "backends/device_backend.h"
#include "backends/plan.h"
#include "backends/winograd.h"
#include "compile/recompute_phase.h"
#include "fuse/fit.h"
#include "fuse/fuse.h"
#include "grad/differentiate.h"
#include "graph/equality.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "inst/irgen.h"
#include "inst/text.h"
#include "inst/verifier.h"
#include "lower/lower.h"
#include "memory/pass_table.h"
#include "memory/transfers.h"
#include "optimize/optimize.h"
#include "optimize/pieces.h"
#include "optimize/rules.h"
#include "optimize/schedule.h"
#include "quant/narrow.h"
#include "quant/quantize.h"
#include "support/progress.h"
#include "support/quote.h"
#include "support/stopwatch.h"
#include "support/suggest.h"

namespace aglow {

namespace {

// ---------------------------------------------------------------- the phases

// What the backend cannot do is said at once, with its reasons.
Status checkSupport(const Function& function, const Backend& backend) {
  Refusals refusals(backend);
  for (const auto& node : function.nodes()) {
    if (node->op() == Op::Save) continue;
    if (const Decision taken = backend.supports(*node); !taken)
      refusals.add("node", node->name(), node->def().name, taken.reason());
  }
  return refusals.status();
}

// Instructions from a file may have been made for another backend, or for another machine: they are planned again, and
// what was fused stays so only where this backend would have done the same.
Status adopt(Program& program, const Backend& backend) {
  forgetPlans(program);
  const auto plan = [&]() -> Status {
    Status planned = planInstructions(program, backend);
    if (planned.ok()) return planned;
    Error error = std::move(planned).error();
    error.hint = "the file was made for another machine or backend; compile its model for this one";
    return error;
  };
  AGLOW_OK(plan());
  const FusePolicy* policy = backend.fusePolicy();
  if (policy != nullptr && takeApart(program, *policy)) AGLOW_OK(plan());
  // Working memory that the plans ask for has no place yet.
  const auto works = [](const Instr& instr) { return instr.plan && instr.plan->scratchBytes > 0; };
  if (std::any_of(program.instrs.begin(), program.instrs.end(), works)) program.unplace();
  return {};
}

Status expandGradients(PhaseScope& scope) {
  const Stopwatch watch;
  AGLOW_TRY(const bool changed, differentiate(*scope.function, lowerRule));
  return scope.passDone("expand-gradients", changed, watch.seconds());
}

Status lowerComposites(PhaseScope& scope) {
  const Stopwatch watch;
  const KeepComposite keep = [&](const Node& node) { return static_cast<bool>(scope.backend.supports(node)); };
  AGLOW_TRY(const bool changed, lower(*scope.function, keep));
  AGLOW_OK(checkSupport(*scope.function, scope.backend));
  return scope.passDone("lower-composites", changed, watch.seconds());
}

// Conversions to integers, and the rules once more: they make integer operators of what stands between conversions.
Phase quantizePhase(std::shared_ptr<const quant::Request> request) {
  constexpr std::string_view kInsert = "insert-conversions";
  const Pipeline pipeline = optimizePipeline();
  std::vector<std::string> names{std::string(quant::kEqualize), std::string(quant::kCorrectBias), std::string(kInsert)};
  for (std::string& name : passNames(pipeline)) names.push_back(std::move(name));
  return {"quantize", "values and weights become integers or narrower floats, as --precision says", Phase::On::Graph,
          std::move(names), [=](PhaseScope& scope) -> Status {
            const auto pass = [&](std::string_view name, const auto& run) -> Status {
              if (scope.stopped || !scope.enabled(name)) return {};
              const Stopwatch watch;
              AGLOW_TRY(const bool changed, run());
              return scope.passDone(name, changed, watch.seconds());
            };
            if (request->precision->apply != nullptr) {
              AGLOW_OK(pass(kInsert, [&] { return quant::narrow(*scope.function, *request); }));
            } else {
              const auto veto = [&](const Node& product) { return scope.backend.quantizes(product).reason(); };
              AGLOW_TRY(quant::Quantization quantization, quant::Quantization::create(*scope.function, *request, veto));
              AGLOW_OK(pass(quant::kEqualize, [&]() -> Result<bool> { return quantization.equalize(); }));
              AGLOW_OK(pass(quant::kCorrectBias, [&]() -> Result<bool> { return quantization.correctBias(); }));
              AGLOW_OK(pass(kInsert, [&] { return quantization.insertConversions(); }));
            }
            return scope.stopped ? Status() : runPasses(scope, pipeline);
          }};
}

Status schedule(PhaseScope& scope) {
  const Stopwatch watch;
  if (!scope.enabled("min-peak-memory")) return {};
  Function& function = *scope.function;
  const std::vector<const Node*> order = scheduleNodes(function).order;
  std::unordered_map<const Node*, Node*> nodes;
  for (const auto& node : function.nodes()) nodes[node.get()] = node.get();
  const auto same = [](const auto& node, const Node* other) { return node.get() == other; };
  const bool changed = !std::equal(function.nodes().begin(), function.nodes().end(), order.begin(), same);
  for (const Node* node : order) function.move(nodes.at(node), nullptr);
  return scope.passDone("min-peak-memory", changed, watch.seconds());
}

Status irgen(PhaseScope& scope) {
  const Stopwatch watch;
  AGLOW_OK(checkSupport(*scope.function, scope.backend));
  AGLOW_TRY(Program program, generate(*scope.function));
  scope.emit(std::move(program));
  return scope.passDone("generate-instructions", true, watch.seconds());
}

Status memory(PhaseScope& scope) {
  Stopwatch watch;
  MemoryOptions options;
  options.before = [&](const MemoryPass& pass) {
    watch = {};
    return scope.enabled(pass.name);
  };
  options.after = [&](const MemoryPass& pass, const Program&, bool changed) -> Result<bool> {
    AGLOW_OK(scope.passDone(pass.name, changed, watch.seconds()));
    return !scope.stopped;
  };
  return runMemoryPasses(*scope.program, options);
}

// As small as it takes for some of them to travel while others are used.
Phase piecesPhase(const LatencyModel& model) {
  constexpr int64_t kParts = 8;
  return {"pieces",
          "large weights are cut into parts where the device has no room for all",
          Phase::On::Graph,
          {"cut-weights"},
          [deviceBytes = model.memoryBytes, travel = model.travel](PhaseScope& scope) -> Status {
            if (!scope.enabled("cut-weights")) return {};
            int64_t bytes = 0;
            for (const Constant* constant : scope.function->module().constants()) bytes += constant->type().bytes();
            if (travel == LatencyModel::Travel::WhereFull && bytes < deviceBytes / 2) return {};
            const Stopwatch watch;
            AGLOW_TRY(const bool changed,
                      cutWeights(*scope.function, std::max<int64_t>(deviceBytes / kParts, 1), scope.evaluator));
            return scope.passDone("cut-weights", changed, watch.seconds());
          }};
}

// In the place of a backend's own: a part of what was fused whole is fused as it was there.
Phase fuseAsPhase(std::shared_ptr<const FusedNodes> nodes) {
  return {"fuse",
          "what ran as one in the whole does so in its parts",
          Phase::On::Instructions,
          {"fuse"},
          [nodes = std::move(nodes)](PhaseScope& scope) -> Status {
            const Stopwatch watch;
            AGLOW_TRY(const bool changed, fuseAs(*scope.program, *nodes));
            AGLOW_OK(planInstructions(*scope.program, scope.backend));
            return scope.passDone("fuse", changed, watch.seconds());
          }};
}

std::vector<std::string> memoryPassNames() {
  std::vector<std::string> names;
  for (const MemoryPass& pass : memoryPasses()) names.emplace_back(pass.name);
  return names;
}

}  // namespace

Phase transfersPhase(const LatencyModel& model);

PhaseList defaultPhases() {
  const auto passes = [](const Pipeline& pipeline) {
    return [pipeline](PhaseScope& scope) { return runPasses(scope, pipeline); };
  };
  using On = Phase::On;
  return PhaseList({
      {"differentiate",
       "requests for gradients become the nodes that compute them",
       On::Graph,
       {"expand-gradients"},
       expandGradients},
      {"optimize", "target-independent rules and passes on the model's own operators", On::Graph,
       passNames(optimizePipeline()), passes(optimizePipeline())},
      {"lower",
       "composite operators become core ones, unless the backend keeps them",
       On::Graph,
       {"lower-composites"},
       lowerComposites},
      {"optimize-core", "the rules again, on what lowering left", On::Graph, passNames(loweredPipeline()),
       passes(loweredPipeline())},
      {"predicate", "what is computed in vain is skipped", On::Graph, passNames(predicatePipeline()),
       passes(predicatePipeline())},
      {"schedule", "the order of nodes that keeps peak memory low", On::Graph, {"min-peak-memory"}, schedule},
      {"irgen", "nodes become instructions over addresses", On::Graph, {"generate-instructions"}, irgen},
      {"memory", "copies vanish, buffers are shared, and all of them get their place in one arena", On::Instructions,
       memoryPassNames(), memory},
  });
}

PhaseList phasesFor(const Backend& backend, const CompileOptions& options) {
  PhaseList phases = defaultPhases();
  backend.changePhases(phases);
  if (options.quantize) phases.insertAfter("optimize", quantizePhase(options.quantize));
  if (options.lanes > 0) {
    if (phases.find("layout") != nullptr) phases.leaveOut("layout");
    phases.insertAfter("optimize-core", layoutPhase({.lanes = options.lanes}));
  }
  if (const auto* device = dynamic_cast<const DeviceBackend*>(&backend)) {
    const LatencyModel model = device->latencies();
    const bool travels = model.travel != LatencyModel::Travel::Never;
    if (travels) phases.insertAfter("memory", transfersPhase(model));
    if (travels && model.memoryBytes > 0) phases.insertAfter("predicate", piecesPhase(model));
  }
  if (options.recompute > 0) phases.insertAfter("predicate", recomputePhase(options.recompute));
  if (options.fuse && phases.find("fuse") == nullptr) phases.insertAfter("irgen", fusePhase(fuseEverything()));
  if (options.fusedNodes && phases.find("fuse") != nullptr) phases.replace("fuse", fuseAsPhase(options.fusedNodes));
  return phases;
}

PhaseList knownPhases() {
  return defaultPhases()
      .insertAfter("optimize", quantizePhase(nullptr))
      .insertAfter("optimize-core", layoutPhase({.lanes = 1}))
      .insertAfter("predicate", piecesPhase({}))
      .insertAfter("predicate", recomputePhase(0))
      .insertAfter("irgen", planPhase())
      .insertAfter("plan", fusePhase(fuseEverything()))
      .insertAfter("memory", transfersPhase({}))
      .insertAfter("memory", chainPhase({}));
}

// ---------------------------------------------------------------- the run

namespace {

// The text form reads back as what was printed.
Status checkRoundTrip(const Module& module) {
  BlobStore blobs;
  AGLOW_TRY(const std::unique_ptr<Module> again, parseModule(print(module, &blobs), blobs));
  const std::string differs = difference(module, *again);
  if (differs.empty()) return {};
  return Error{.code = Code::BadVerify, .message = "the graph's text reads back as another graph: " + differs};
}

Status checkRoundTrip(std::span<const Program> programs) {
  BlobStore blobs;
  AGLOW_TRY(const std::vector<Program> again, parsePrograms(print(programs, &blobs), blobs));
  if (std::equal(again.begin(), again.end(), programs.begin(), programs.end())) return {};
  return Error{.code = Code::BadVerify, .message = "the programs' text reads back as other programs"};
}

// Verifies, keeps time, tells the observer and stops.
class Run final : public PhaseScope {
public:
  Run(Compilation& compilation, const CompileOptions& options, Evaluator& folding)
      : PhaseScope(*compilation.backend, folding), compilation_(compilation), options_(options) {}

  Status run(const PhaseList& phases) {
    phase_ = "import";
    if (compilation_.module == nullptr) {
      AGLOW_OK(verifyNow(phase_));
      for (Program& program : compilation_.programs) AGLOW_OK(adopt(program, backend));
    }
    AGLOW_OK(phaseDone(0));
    bool started = options_.startFrom.empty();
    for (const Phase& phase : phases) {
      if (stopped) return {};
      started = started || phase.name == options_.startFrom;
      if (!started) continue;
      const bool onProgram = phase.on == Phase::On::Instructions;
      if (onProgram == (compilation_.module != nullptr)) {
        // Instructions were loaded as they are.
        if (options_.startFrom.empty() && compilation_.module == nullptr) continue;
        return Error{
            .code = Code::Usage,
            .message = fmt::format("phase '{}' works on {}, but the file holds {}", phase.name,
                                   onProgram ? "instructions" : "a graph", onProgram ? "a graph" : "instructions")};
      }
      phase_ = phase.name;
      reportProgress({phase_});
      const Stopwatch watch;
      AGLOW_OK(onProgram ? runOnPrograms(phase) : runOnFunctions(phase));
      AGLOW_OK(phaseDone(watch.seconds()));
    }
    if (stopped || options_.stopAfter.empty()) return {};
    return Error{.code = Code::Usage, .message = fmt::format("'{}' is not reached", options_.stopAfter)};
  }

  const std::set<std::string, std::less<>>& disabled() const override { return options_.disabled; }
  void countRule(const std::string& name, int64_t times) override { compilation_.ruleCounts[name] += times; }

  // The graph goes away when the last function has its program.
  void emit(Program made) override {
    compilation_.programs.push_back(std::move(made));
    if (compilation_.programs.size() == compilation_.module->functions().size()) compilation_.module.reset();
  }

  // All that there are, for phases that cannot see to one of them alone, and say themselves which has a fault.
  std::span<Program> programs() {
    name_.clear();
    return compilation_.programs;
  }

  Status passDone(std::string_view pass, bool changed, double seconds) override {
    auto& timings = compilation_.timings;
    const auto same = [&](const PassTiming& t) { return t.phase == phase_ && t.pass == pass; };
    auto it = std::find_if(timings.begin(), timings.end(), same);
    if (it == timings.end())
      it = timings.insert(
          it, {.phase = std::string(phase_), .pass = std::string(pass), .runs = 0, .changes = 0, .seconds = 0});
    it->runs += 1;
    it->changes += changed ? 1 : 0;
    it->seconds += seconds;
    if (options_.verifyEach && changed) AGLOW_OK(verifyNow(pass));
    if (options_.stopAfter == pass) stopped = true;
    return tell(pass, changed, seconds);
  }

private:
  Status runOnFunctions(const Phase& phase) {
    std::vector<Function*> functions;
    for (const auto& one : compilation_.module->functions()) functions.push_back(one.get());
    return runOnEach(phase, functions, function, [](const Function& one) { return one.name(); });
  }

  Status runOnPrograms(const Phase& phase) {
    std::vector<Program*> programs;
    for (Program& one : compilation_.programs) programs.push_back(&one);
    return runOnEach(phase, programs, program, [](const Program& one) { return one.name; });
  }

  // Stops when every one has come to where it is to stop.
  template <class T, class NameOf>
  Status runOnEach(const Phase& phase, const std::vector<T*>& all, T*& current, const NameOf& nameOf) {
    bool anyStopped = false;
    for (T* one : all) {
      name_ = nameOf(*one);
      current = one;
      stopped = false;
      Status status = phase.run(*this);
      if (!status.ok() && all.size() > 1 && !name_.empty())
        return std::move(status).error().at(fmt::format("function {}", quoted(name_)));
      AGLOW_OK(std::move(status));
      anyStopped = anyStopped || stopped;
    }
    current = nullptr;
    name_.clear();
    stopped = anyStopped;
    return {};
  }

  Status phaseDone(double seconds) {
    AGLOW_OK(verifyNow(phase_));
    if (options_.stopAfter == phase_) stopped = true;
    return tell({}, true, seconds);
  }

  Status verifyNow(std::string_view after) const {
    const std::span<const Program> programs = compilation_.programs;
    const Module* module = compilation_.module.get();
    Status status = module != nullptr ? verify(*module) : verify(programs);
    if (status.ok() && options_.verifyEach)
      status = module != nullptr ? checkRoundTrip(*module) : checkRoundTrip(programs);
    if (status.ok()) return status;
    return Error(status.error()).at(fmt::format("after {}", after));
  }

  Status tell(std::string_view pass, bool changed, double seconds) const {
    if (!options_.observer) return {};
    StageEvent event{.phase = phase_, .pass = pass, .function = name_, .changed = changed, .seconds = seconds};
    event.graph = compilation_.module.get();
    if (event.graph == nullptr) event.programs = compilation_.programs;
    return options_.observer(event);
  }

  Compilation& compilation_;
  const CompileOptions& options_;
  std::string_view phase_;
  std::string name_;  // of the function at hand
};

// What stays on the device is a matter of all programs that share it: the first one's turn is that of all.
Status placeTransfers(Run& run, const LatencyModel& model) {
  const std::span<Program> programs = run.programs();
  if (run.program != programs.data()) return {};
  if (model.travel == LatencyModel::Travel::WhereFull && fitsWhole(programs, model.memoryBytes)) return {};
  Stopwatch watch;
  AGLOW_TRY(const int64_t arenaBytes, placeCopies(programs, model));
  AGLOW_OK(run.passDone("place-copies", true, watch.seconds()));
  if (!run.enabled("prefetch")) return {};
  watch = {};
  bool changed = false;
  for (Program& program : programs) changed = prefetchCopies(program, arenaBytes) || changed;
  return run.passDone("prefetch", changed, watch.seconds());
}

std::vector<std::string> phaseNames(const PhaseList& phases) {
  std::vector<std::string> names;
  for (const Phase& phase : phases) names.push_back(phase.name);
  return names;
}

std::vector<std::string> passNames(const PhaseList& phases) {
  std::vector<std::string> names;
  for (const Phase& phase : phases) names.insert(names.end(), phase.passes.begin(), phase.passes.end());
  return names;
}

std::vector<std::string> switchNames(const PhaseList& phases) {
  std::vector<std::string> names = passNames(phases);
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

// All phases there are, with the passes that only the list's have, and those of the list that only its backend has.
PhaseList withKnown(const PhaseList& phases) {
  std::vector<Phase> all;
  const PhaseList known = knownPhases();
  for (const Phase& phase : known) {
    all.push_back(phase);
    if (const Phase* own = phases.find(phase.name); own != nullptr)
      all.back().passes.insert(all.back().passes.end(), own->passes.begin(), own->passes.end());
  }
  for (const Phase& phase : phases)
    if (known.find(phase.name) == nullptr) all.push_back(phase);
  return PhaseList(std::move(all));
}

// Against all phases that there are.
Status checkNames(const CompileOptions& options, const PhaseList& known) {
  constexpr int64_t kMostLanes = 64;
  if (options.lanes < 0 || options.lanes > kMostLanes)
    return Error{.code = Code::Usage,
                 .message = fmt::format("expected from 0 to {} lanes, got {}", kMostLanes, options.lanes)};
  AGLOW_OK(checkStage(options.stopAfter, known));
  AGLOW_OK(checkName(options.startFrom, phaseNames(known), "phase"));
  for (const std::string& name : options.disabled) AGLOW_OK(checkName(name, switchNames(known), "pass or rule"));
  return {};
}

Status checkOptions(const CompileOptions& options, const Backend& backend) {
  const PhaseList phases = phasesFor(backend, options), known = withKnown(phases);
  AGLOW_OK(checkNames(options, known));
  for (const std::string& name : {options.startFrom, options.stopAfter})
    if (known.find(name) != nullptr && phases.find(name) == nullptr)
      return Error{.code = Code::Usage,
                   .message = fmt::format("backend '{}' has no phase '{}'", backend.name(), name),
                   .where = {},
                   .hint = fmt::format("its phases are {}", fmt::join(phaseNames(phases), ", "))};
  return {};
}

}  // namespace

Status checkStage(const std::string& name, const PhaseList& phases) {
  std::vector<std::string> names = phaseNames(phases);
  names.emplace_back("import");
  for (std::string& pass : passNames(phases)) names.push_back(std::move(pass));
  return checkName(name, names, "phase or pass");
}

Status checkOptions(const CompileOptions& options) {
  // What is kept needs no backend, and neither does what only looks at a model: to make one loads the code generator.
  // The machine at hand is a target that there is; who compiles asks again.
  const bool wholeWay = options.startFrom.empty() && options.stopAfter.empty();
  const bool targetIsKnown = !options.cache.empty() || options.target == codegen::TargetOptions();
  if (wholeWay && targetIsKnown && (options.backend.empty() || options.backend == defaultBackend()))
    return checkNames(options, knownPhases());
  AGLOW_TRY(const std::shared_ptr<const Backend> backend, makeBackend(options));
  return checkOptions(options, *backend);
}

Phase transfersPhase(const LatencyModel& model) {
  return {"transfers",
          "what has no place in the device's memory travels while something else is computed",
          Phase::On::Instructions,
          {"place-copies", "prefetch"},
          [model](PhaseScope& scope) { return placeTransfers(static_cast<Run&>(scope), model); }};
}

Status runPhases(Compilation& compilation, const CompileOptions& options, Evaluator& evaluator) {
  AGLOW_OK(checkOptions(options, *compilation.backend));
  AGLOW_OK(Run(compilation, options, evaluator).run(phasesFor(*compilation.backend, options)));
  return options.recompute > 0 ? checkArena(compilation.programs, options.recompute) : Status();
}

}  // namespace aglow
