// What travels between host and device: placeholders always, constants where the device has no room for them.
#include "memory/transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "inst/banks.h"
#include "inst/beside.h"
#include "inst/lifetimes.h"
#include "memory/place.h"
#include "memory/timeline.h"
#include "support/quote.h"
#include "support/sizes.h"

namespace aglow {

namespace {

using Names = std::set<std::string, std::less<>>;

int64_t aligned(const Region& region) { return alignUp(region.type.bytes(), Program::kAlignment); }

// A program whose placeholders and some of whose constants lie with the host.
class Rewriting {
public:
  // With `perUse` a constant is fetched for each instruction that reads it, and otherwise again only where that takes
  // less time than what is computed in between.
  Rewriting(Program program, const Names& streamed, const LatencyModel& model, bool perUse)
      : program_(std::move(program)) {
    forgetBeside(program_);
    const Banks banks(program_);
    std::erase_if(program_.instrs, [](const Instr& instr) { return instr.isMarker(); });
    extents_ = program_.extents();
    for (const Region& region : program_.regions) names_.insert(region.name);
    collectUses();
    numberCopies();
    std::vector<double> elapsed = {0};  // before each instruction
    for (const Instr& instr : program_.instrs) elapsed.push_back(elapsed.back() + model.secondsOf(program_, instr));
    const auto regions = static_cast<RegionId>(program_.regions.size());
    for (RegionId id = 0; id < regions; ++id) {
      const bool placeholder = program_[id].as<PlaceholderInit>() != nullptr;
      if (banks.inHost(id) || (!placeholder && !streamed.contains(program_[id].name))) continue;
      const double copy = model.copySeconds(program_[id].type.bytes());
      for (const int32_t at : uses_[id].touched) {
        std::vector<Stay>& stays = stays_[id];
        const bool same =
            !stays.empty() && (placeholder || (!perUse && elapsed[static_cast<size_t>(at)] -
                                                                  elapsed[static_cast<size_t>(stays.back().last) + 1] <
                                                              copy));
        if (same)
          stays.back().last = at;
        else
          stays.push_back({.first = at, .last = at, .buffer = makeBuffer(id)});
      }
    }
  }

  Program write() && {
    std::vector<Instr> instrs;
    std::multimap<int32_t, std::pair<RegionId, const Stay*>> begins, ends;
    for (const auto& [id, stays] : stays_)
      for (const Stay& stay : stays) {
        const auto* placeholder = program_[id].as<PlaceholderInit>();
        if (placeholder == nullptr || reads(placeholder->access)) begins.emplace(stay.first, std::pair(id, &stay));
        if (placeholder != nullptr && writes(placeholder->access))
          ends.emplace(uses_[id].lastWrite, std::pair(id, &stay));
      }
    for (int32_t at = 0; at < static_cast<int32_t>(program_.instrs.size()); ++at) {
      for (auto [it, end] = begins.equal_range(at); it != end; ++it)
        addCopy(instrs, it->second.second->buffer, it->second.first, it->second.first);
      Instr instr = std::move(program_.instrs[static_cast<size_t>(at)]);
      rename(instr, at);
      instrs.push_back(std::move(instr));
      for (auto [it, end] = ends.equal_range(at); it != end; ++it)
        addCopy(instrs, it->second.first, it->second.second->buffer, it->second.first);
    }
    program_.instrs = std::move(instrs);
    markLifetimes(program_);
    return std::move(program_);
  }

private:
  struct Uses {
    std::vector<int32_t> touched;
    int32_t lastWrite = -1;
  };
  // Instructions from the first to the last find the bytes in this buffer.
  struct Stay {
    int32_t first = 0, last = 0;
    RegionId buffer = kNoRegion;
  };

  // Each copy that is there already gets a token of its own, since it may come to be under way beside others.
  void numberCopies() {
    std::map<int64_t, int64_t> numbers;
    for (Instr& instr : program_.instrs) {
      if (instr.kind == Instr::Kind::CopyStart) numbers[instr.token] = token_++;
      if (instr.kind == Instr::Kind::CopyStart || instr.kind == Instr::Kind::CopyWait)
        instr.token = numbers.at(instr.token);
    }
  }

  void collectUses() {
    for (int32_t at = 0; at < static_cast<int32_t>(program_.instrs.size()); ++at) {
      const Instr& instr = program_.instrs[static_cast<size_t>(at)];
      const auto note = [&](RegionId id, bool written) {
        if (id == kNoRegion) return;
        Uses& uses = uses_[extents_[static_cast<size_t>(id)].root];
        if (uses.touched.empty() || uses.touched.back() != at) uses.touched.push_back(at);
        if (written) uses.lastWrite = at;
      };
      for (const Operand& operand : instr.operands) note(operand.region, writes(operand.access));
      note(instr.predicate, false);
    }
  }

  std::string freshName(const std::string& name) {
    std::string fresh = name + ".device";
    for (int number = 2; !names_.insert(fresh).second; ++number) fresh = fmt::format("{}.device{}", name, number);
    return fresh;
  }

  RegionId makeBuffer(RegionId of) {
    return program_.add({.name = freshName(program_[of].name), .type = program_[of].type, .source = Allocated{}});
  }

  void addCopy(std::vector<Instr>& instrs, RegionId to, RegionId from, RegionId host) {
    Instr copy{.kind = Instr::Kind::CopyStart,
               .operands = {{to, Access::Out}, {from, Access::In}},
               .token = token_++,
               .origin = program_[host].name};
    instrs.push_back(copy);
    copy.kind = Instr::Kind::CopyWait;
    instrs.push_back(std::move(copy));
  }

  void rename(Instr& instr, int32_t at) {
    for (Operand& operand : instr.operands) operand.region = renamed(operand.region, at);
    instr.predicate = renamed(instr.predicate, at);
    for (Instr& step : instr.body) rename(step, at);
  }

  RegionId renamed(RegionId id, int32_t at) {
    if (id == kNoRegion) return id;
    const Extent& extent = extents_[static_cast<size_t>(id)];
    const auto stays = stays_.find(extent.root);
    if (stays == stays_.end()) return id;
    const auto stay = std::find_if(stays->second.begin(), stays->second.end(),
                                   [&](const Stay& one) { return one.first <= at && at <= one.last; });
    if (id == extent.root) return stay->buffer;
    const auto [it, fresh] = views_.try_emplace({stay->buffer, id}, kNoRegion);
    if (fresh)
      it->second = program_.add({.name = freshName(program_[id].name),
                                 .type = program_[id].type,
                                 .source = ViewOf{stay->buffer, extent.begin}});
    return it->second;
  }

  Program program_;
  std::vector<Extent> extents_;  // before anything moved
  std::map<RegionId, Uses> uses_;
  std::map<RegionId, std::vector<Stay>> stays_;
  std::map<std::pair<RegionId, RegionId>, RegionId> views_;
  Names names_;
  int64_t token_ = 0;
};

// A constant, as far as its place is in question.
struct Weight {
  std::string name;
  int64_t bytes = 0;
  int fetches = 0;            // instructions that read it
  double copySeconds = 0;     // of one copy
  double computeSeconds = 0;  // of these instructions

  // Mostly a start: it costs an engine's time that its bytes are not worth.
  bool small(const LatencyModel& model) const { return copySeconds < 2 * model.copyStartSeconds; }
};

std::vector<Weight> weightsOf(std::span<const Program> programs, const LatencyModel& model) {
  std::map<std::string, Weight> found;
  for (const Program& program : programs) {
    const std::vector<Extent> extents = program.extents();
    const Banks banks(program);
    for (const Instr& instr : program.instrs) {
      if (instr.isMarker()) continue;
      for (const Operand& operand : instr.operands) {
        if (operand.region == kNoRegion) continue;
        const Region& root = program[extents[static_cast<size_t>(operand.region)].root];
        if (root.as<ConstantInit>() == nullptr || banks.inHost(operand.region)) continue;
        Weight& weight = found[root.name];
        weight.name = root.name;
        weight.bytes = aligned(root);
        weight.copySeconds = model.copySeconds(root.type.bytes());
        weight.fetches += 1;
        weight.computeSeconds += model.secondsOf(program, instr);
      }
    }
  }
  std::vector<Weight> weights;
  for (auto& [name, weight] : found) weights.push_back(std::move(weight));
  return weights;
}

// In which order constants get what room there is: those first whose copies are hardest to hide.
using Before = bool (*)(const Weight& a, const Weight& b);
constexpr Before kOrders[] = {
    [](const Weight& a, const Weight& b) {
      return a.copySeconds * b.computeSeconds > b.copySeconds * a.computeSeconds;
    },
    [](const Weight& a, const Weight& b) { return a.fetches > b.fetches; },
    [](const Weight& a, const Weight& b) { return a.bytes < b.bytes; },
};
// The parts of weights were chosen before, for what is allowed.
constexpr const char* kHint =
    "smaller batches take less; with more memory, large weights have larger parts, which may take more or less";
// Which share of the room they get; the rest is for copies that begin early.
constexpr double kShares[] = {1, 0.875, 0.75, 0.5, 0.25, 0, 1.25};

class Search {
public:
  Search(std::span<const Program> programs, const LatencyModel& model)
      : programs_(programs), model_(model), weights_(weightsOf(programs, model)) {
    for (const Region* region : sharedRegions(programs))
      if (region->isState()) stateBytes_ += aligned(*region);
    for (const Weight& weight : weights_) {
      all_.insert(weight.name);
      several_ = several_ || weight.fetches > 1;
    }
  }

  Result<int64_t> run(std::span<Program> out) {
    constexpr int64_t kNoBound = INT64_MAX / 2;
    const int64_t bytes = model_.memoryBytes > 0 ? std::min(model_.memoryBytes, kNoBound) : kNoBound;
    bufferBytes_ = model_.bufferBytes > 0 ? model_.bufferBytes : kNoBound;
    // No choice has more buffers than this one.
    for (const Program& program : programs_) AGLOW_OK(checkSizes(Rewriting(program, all_, model_, true).write()));
    // Nothing has to travel again and again where everything fits.
    if (attempt({}, false, bytes)) return take(out);
    const auto& [arena, where] = largestArena();
    const int64_t least = stateBytes_ + arena;
    if (arena > bufferBytes_)
      return Error{.code = Code::TooLarge,
                   .message = fmt::format("at least {} bytes are needed together, even with all weights in the host's "
                                          "memory; one buffer of the device has at most {}",
                                          arena, bufferBytes_),
                   .where = where,
                   .hint = kHint};
    if (least > bytes)
      return Error{.code = Code::TooLarge,
                   .message = fmt::format("at least {} bytes of the device's memory are needed, even with all weights "
                                          "in the host's memory; {} are allowed",
                                          least, bytes),
                   .where = where,
                   .hint = kHint};
    attempt(all_, true, bytes);
    for (const Before before : kOrders) {
      std::vector<const Weight*> order;
      for (const Weight& weight : weights_) order.push_back(&weight);
      std::stable_sort(order.begin(), order.end(), [&](const Weight* a, const Weight* b) {
        const bool smallA = a->small(model_), smallB = b->small(model_);
        return smallA != smallB ? smallA : before(*a, *b);
      });
      for (const double share : kShares) {
        Names streamed = all_;
        auto room = static_cast<int64_t>(static_cast<double>(bytes - least) * share);
        for (const Weight* weight : order)
          if (weight->bytes <= room) {
            room -= weight->bytes;
            streamed.erase(weight->name);
          }
        if (!tried_.insert(streamed).second) continue;
        attempt(streamed, false, bytes);
        if (several_) attempt(streamed, true, bytes);
      }
    }
    AGLOW_CHECK(best_.has_value(), "what fits is not found");
    return take(out);
  }

private:
  struct Choice {
    std::vector<Program> programs;
    double seconds = 0;
    int64_t arenaBytes = 0;  // that there are
  };

  Program rewritten(const Program& program, const Names& streamed, bool perUse, int64_t enough) const {
    Program made = Rewriting(program, streamed, model_, perUse).write();
    const Result<bool> placed = placeArena(made, enough);
    AGLOW_CHECK(placed.ok(), "buffers that could be placed can be placed no more");
    return made;
  }

  // With all weights in the host's memory, and which of several functions needs so much.
  std::pair<int64_t, std::string> largestArena() const {
    std::pair<int64_t, std::string> most;
    for (const Program& program : programs_) {
      const int64_t bytes = rewritten(program, all_, true, 0).arenaBytes;
      if (bytes <= most.first) continue;
      most = {bytes, programs_.size() > 1 ? fmt::format("function {}", quoted(program.name)) : std::string()};
    }
    return most;
  }

  // Keeps the choice if it fits, and takes less time than others.
  bool attempt(const Names& streamed, bool perUse, int64_t bytes) {
    Choice choice{.programs = {}, .seconds = 0, .arenaBytes = bytes - stateBytes_};
    for (const Weight& weight : weights_)
      if (!streamed.contains(weight.name)) choice.arenaBytes -= weight.bytes;
    choice.arenaBytes = std::min(choice.arenaBytes, bufferBytes_);
    for (const Program& program : programs_) {
      Program made = rewritten(program, streamed, perUse, choice.arenaBytes);
      if (made.arenaBytes > choice.arenaBytes) return false;
      Program early = made;
      prefetchCopies(early, choice.arenaBytes);
      choice.seconds += simulate(early, model_).seconds;
      choice.programs.push_back(std::move(made));
    }
    if (!best_ || choice.seconds < best_->seconds) best_ = std::move(choice);
    return true;
  }

  int64_t take(std::span<Program> out) {
    std::move(best_->programs.begin(), best_->programs.end(), out.begin());
    return best_->arenaBytes;
  }

  std::span<const Program> programs_;
  const LatencyModel& model_;
  std::vector<Weight> weights_;
  Names all_;
  bool several_ = false;  // some constant is read more than once
  int64_t stateBytes_ = 0, bufferBytes_ = 0;
  std::set<Names> tried_;
  std::optional<Choice> best_;
};

}  // namespace

bool fitsWhole(std::span<const Program> programs, int64_t bytes) {
  double sum = 0;  // of sizes that nobody has added up yet
  for (const Region* region : sharedRegions(programs)) sum += static_cast<double>(aligned(*region));
  int64_t arena = 0;
  for (const Program& program : programs) arena = std::max(arena, program.arenaBytes);
  return sum + static_cast<double>(arena) <= 0.98 * static_cast<double>(bytes);
}

Result<int64_t> placeCopies(std::span<Program> programs, const LatencyModel& model) {
  return Search(programs, model).run(programs);
}

}  // namespace aglow
