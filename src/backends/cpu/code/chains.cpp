#include "backends/cpu/code/chains.h"

#include <algorithm>

#include "backends/cpu/code/cut_rows.h"
#include "backends/cpu/code/plans.h"
#include "inst/chain.h"
#include "inst/cost.h"
#include "inst/lifetimes.h"
#include "memory/live_bytes.h"
#include "memory/place.h"
#include "support/sizes.h"
#include "support/stopwatch.h"

namespace aglow {

namespace {

// A step on some threads, as the pool shares it: a few chunks for each thread that it is worth.
double sharedTime(double microseconds, int64_t units, int64_t threads) {
  constexpr double kBarrier = 2;
  constexpr int64_t kChunks = 4;
  const int64_t worth = threadsWorth(microseconds), chunks = std::min(kChunks * worth, units);
  const int64_t taking = std::min({threads, worth, chunks});
  if (taking < 2) return microseconds;
  return microseconds * static_cast<double>(ceilDiv(chunks, taking)) / static_cast<double>(chunks) + kBarrier;
}

class Chaining {
public:
  Chaining(Program& program, const cpu::Machine& machine)
      : program_(program), machine_(machine), extents_(program.extents()), mostBytes_(peak()) {
    for (const Instr& instr : program.instrs) microseconds_.push_back(microsecondsOf(costOf(program, instr)));
  }

  bool run() {
    bool changed = false;
    for (size_t first = 0; first < program_.instrs.size();) {
      const Chain chain = free(first) && depends(first, first + 1) ? best(first) : Chain{};
      for (size_t i = 0; i < chain.plans.size(); ++i) set(first + i, chain.plans[i], i > 0);
      changed |= !chain.plans.empty();
      first += std::max<size_t>(chain.plans.size(), 1);
    }
    return changed;
  }

private:
  struct Chain {
    std::vector<Plan> plans;
    double gain = 0;  // in microseconds
  };

  const Instr& instr(size_t at) const { return program_.instrs[at]; }
  Instr& instr(size_t at) { return program_.instrs[at]; }

  // Runs alone, by a plan.
  bool free(size_t at) const {
    if (at >= program_.instrs.size()) return false;
    const Instr& one = instr(at);
    return one.computes() && one.predicate == kNoRegion && one.plan && one.plan->units > 0 && !one.beside &&
           !one.chained && (at + 1 == program_.instrs.size() || !instr(at + 1).beside);
  }

  // Whether an instruction reads what an earlier one writes.
  bool depends(size_t earlier, size_t later) const {
    if (later >= program_.instrs.size()) return false;
    for (const Operand& written : instr(earlier).results())
      for (const Operand& read : instr(later).operands)
        if (written.region != kNoRegion && read.region != kNoRegion && reads(read.access) &&
            extents_[static_cast<size_t>(written.region)].overlaps(extents_[static_cast<size_t>(read.region)]))
          return true;
    return false;
  }

  // With as many parts as there can be: many are easily shared evenly.
  Chain best(size_t first) {
    constexpr int64_t kMostParts = 64, kFewestParts = 8;
    const Plan& plan = *instr(first).plan;
    Chain found;
    const int64_t images = plan.epilogue ? (*plan.epilogue)[0] : 1;
    if (images < 1) return found;
    for (int64_t axis = plan.epilogue ? 1 : 0; axis < (plan.epilogue ? 4 : 1); ++axis) {
      const int64_t extent = plan.epilogue ? (*plan.epilogue)[static_cast<size_t>(axis)] : plan.units;
      for (int64_t parts = std::min(kMostParts / images, extent); parts * images >= kFewestParts; --parts) {
        if (extent % parts != 0) continue;
        Chain chain = grow(first, axis, images, parts);
        if (chain.plans.empty()) continue;
        if (chain.gain > found.gain) found = std::move(chain);
        break;
      }
    }
    return found;
  }

  // The chain that begins at an instruction and gains most; none where none gains.
  Chain grow(size_t first, int64_t axis, int64_t images, int64_t parts) {
    std::optional<Plan> plan = cpu::cutPlan(program_, instr(first), axis, images, parts, machine_);
    if (!plan || !checkCut(program_, withPlan(first, *plan)).ok()) return {};
    std::vector<Instr> members = {withPlan(first, *std::move(plan))};
    size_t taken = 1;
    double gain = 0;
    while (members.size() < kMostChained && join(members, first, images, parts)) {
      const double now = gainOf(first, members.size(), images * parts);
      if (now <= gain || !fits(first, members.size())) continue;
      gain = now;
      taken = members.size();
    }
    Chain chain{.plans = {}, .gain = gain};
    for (size_t i = 0; taken > 1 && i < taken; ++i) chain.plans.push_back(*std::move(members[i].plan));
    return chain;
  }

  Instr withPlan(size_t at, Plan plan) const {
    Instr cut = instr(at);
    cut.plan = std::move(plan);
    return cut;
  }

  // The next instruction, if it can go part by part with all members.
  bool join(std::vector<Instr>& members, size_t first, int64_t images, int64_t parts) const {
    const size_t at = first + members.size();
    if (!free(at)) return false;
    bool used = false;
    for (size_t member = first; member < at; ++member) used |= depends(member, at);
    if (!used) return false;
    for (int64_t axis = 0; axis < 4; ++axis) {
      std::optional<Plan> plan = cpu::cutPlan(program_, instr(at), axis, images, parts, machine_);
      if (!plan) continue;
      Instr cut = withPlan(at, *std::move(plan));
      const auto apart = [&](const Instr& member) { return partByPart(extents_, member, cut); };
      if (!checkCut(program_, cut).ok() || !std::all_of(members.begin(), members.end(), apart)) continue;
      members.push_back(std::move(cut));
      return true;
    }
    return false;
  }

  // What a chain gains on all these numbers of threads together; nothing where it loses on one of them.
  double gainOf(size_t first, size_t count, int64_t parts) const {
    double sum = 0;
    for (const int64_t threads : {2, 4, 8, 16}) {
      double whole = 0, apart = 0;
      for (size_t at = first; at < first + count; ++at) {
        whole += microseconds_[at];
        apart += sharedTime(microseconds_[at], instr(at).plan->units, threads);
      }
      const double gain = apart - sharedTime(whole, parts, threads);
      if (gain < 0) return 0;
      sum += gain;
    }
    return sum;
  }

  // Whether no more bytes than before are alive at once.
  bool fits(size_t first, size_t count) {
    for (size_t at = first + 1; at < first + count; ++at) instr(at).chained = true;
    const bool does = peak() <= mostBytes_;
    for (size_t at = first + 1; at < first + count; ++at) instr(at).chained = false;
    return does;
  }

  int64_t peak() const {
    LiveBytes live(static_cast<int32_t>(program_.instrs.size()));
    const std::vector<Lifetime> lifetimes = lifetimesOf(program_);
    for (size_t i = 0; i < lifetimes.size(); ++i)
      if (lifetimes[i].first >= 0)
        live.add(lifetimes[i].first, lifetimes[i].last, alignUp(program_.regions[i].type.bytes(), Program::kAlignment));
    return live.peak();
  }

  void set(size_t at, const Plan& plan, bool chained) {
    instr(at).plan = plan;
    instr(at).chained = chained;
  }

  Program& program_;
  const cpu::Machine& machine_;
  std::vector<Extent> extents_;
  std::vector<double> microseconds_;
  int64_t mostBytes_;
};

}  // namespace

Result<bool> chainInstructions(Program& program, const cpu::Machine& machine) {
  Program chained = program;
  std::erase_if(chained.instrs, [](const Instr& instr) { return instr.isMarker(); });
  if (!Chaining(chained, machine).run()) return false;
  markLifetimes(chained);
  AGLOW_TRY([[maybe_unused]] const bool placed, placeArena(chained));
  program = std::move(chained);
  return true;
}

Phase chainPhase(const cpu::Machine& machine) {
  return {
      .name = "chain",
      .doc = "instructions run part by part: those that need not wait for each other, and rows that a predicate picks",
      .on = Phase::On::Instructions,
      .passes = {"cut-rows", "chain"},
      .run = [machine](PhaseScope& scope) -> Status {
        if (scope.enabled("cut-rows")) {
          const Stopwatch watch;
          const bool changed = cutRows(*scope.program, machine);
          AGLOW_OK(scope.passDone("cut-rows", changed, watch.seconds()));
        }
        if (scope.stopped || !scope.enabled("chain")) return {};
        const Stopwatch watch;
        AGLOW_TRY(const bool changed, chainInstructions(*scope.program, machine));
        return scope.passDone("chain", changed, watch.seconds());
      }};
}

}  // namespace aglow
