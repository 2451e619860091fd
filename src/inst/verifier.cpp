// One walk over the instructions with the state of every region: alive or not, and which of its bytes are written.
#include "inst/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "inst/chain.h"
#include "inst/fused.h"
#include "inst/text.h"
#include "ops/all_ops.h"
#include "support/quote.h"

namespace aglow {

namespace {

Error bad(std::string message) { return {.code = Code::BadVerify, .message = std::move(message)}; }

// Bytes that hold something, as disjoint intervals that do not touch.
class ByteSet {
public:
  void add(int64_t begin, int64_t end) {
    auto it = intervals_.upper_bound(begin);
    if (it != intervals_.begin() && std::prev(it)->second >= begin) --it;
    while (it != intervals_.end() && it->first <= end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second);
      it = intervals_.erase(it);
    }
    intervals_.emplace(begin, end);
  }
  void remove(int64_t begin, int64_t end) {
    if (begin == end) return;
    auto it = intervals_.upper_bound(begin);
    if (it != intervals_.begin() && std::prev(it)->second > begin) --it;
    while (it != intervals_.end() && it->first < end) {
      const auto [from, to] = *it;
      it = intervals_.erase(it);
      if (from < begin) intervals_.emplace(from, begin);
      if (to > end) intervals_.emplace(end, to);
    }
  }
  bool contains(int64_t begin, int64_t end) const {
    if (begin == end) return true;
    const auto it = intervals_.upper_bound(begin);
    return it != intervals_.begin() && std::prev(it)->second >= end;
  }

private:
  std::map<int64_t, int64_t> intervals_;  // begin to end
};

class Verifier {
public:
  explicit Verifier(const Program& program) : program_(program), state_(program.regions.size()) {}

  Status run() {
    AGLOW_OK(checkRegions());
    extents_ = program_.extents();
    for (size_t i = 0; i < program_.instrs.size(); ++i) {
      Status status = checkBeside(i);
      if (status.ok()) status = checkChained(i);
      if (status.ok()) status = checkInstr(program_.instrs[i]);
      if (!status.ok())
        return std::move(status).error().at(fmt::format("instruction {}: {}", i, print(program_, program_.instrs[i])));
    }
    return checkEnd();
  }

private:
  enum class Life : uint8_t { Unborn, Alive, Dead };
  struct State {
    Life life = Life::Unborn;
    ByteSet written;
  };

  const Region& at(RegionId id) const { return program_[id]; }
  State& state(RegionId id) { return state_[static_cast<size_t>(id)]; }
  const Extent& extent(RegionId id) const { return extents_[static_cast<size_t>(id)]; }
  std::string name(RegionId id) const { return quoted(at(id).name); }

  Status checkRegions() {
    std::unordered_set<std::string_view> names;
    for (size_t i = 0; i < program_.regions.size(); ++i) {
      const auto id = static_cast<RegionId>(i);
      Status status = checkRegion(id);
      if (!status.ok()) return std::move(status).error().at(fmt::format("region {}", name(id)));
      if (!names.insert(at(id).name).second) return bad(fmt::format("two regions are named {}", name(id)));
      if (!at(id).declared()) continue;
      state(id).life = Life::Alive;
      const auto* placeholder = at(id).as<PlaceholderInit>();
      if (placeholder == nullptr || reads(placeholder->access)) state(id).written.add(0, at(id).type.bytes());
    }
    return {};
  }

  Status checkRegion(RegionId id) const {
    const Region& region = at(id);
    if (const auto* constant = region.as<ConstantInit>()) {
      if (constant->bytes.empty() || constant->bytes.type() != region.type)
        return bad(fmt::format("expected bytes of {}, found {}", region.type.text(),
                               constant->bytes.empty() ? "none" : constant->bytes.type().text()));
    } else if (const auto* state = region.as<StateInit>()) {
      if (state->initial.empty() || state->initial.type() != region.type)
        return bad(fmt::format("expected an initial value of {}", region.type.text()));
    } else if (const auto* placeholder = region.as<PlaceholderInit>()) {
      if (placeholder->access == Access::Scratch) return bad("a placeholder cannot be scratch memory");
    } else if (const auto* allocated = region.as<Allocated>()) {
      return checkPlace(region, allocated->offset);
    } else if (const auto* view = region.as<ViewOf>()) {
      if (view->base < 0 || view->base >= id) return bad("a view stands after its base");
      if (at(view->base).as<Local>() != nullptr) return bad("a local has no bytes to be seen");
      const int64_t room = at(view->base).type.bytes();
      if (view->offset < 0 || view->offset > room || region.type.bytes() > room - view->offset)
        return bad(fmt::format("{} bytes from {} on do not lie inside the {} bytes of {}", region.type.bytes(),
                               view->offset, room, name(view->base)));
      if (view->offset % elemBytes(region.type.kind()) != 0)
        return bad(fmt::format("offset {} is not aligned to {}", view->offset, elemName(region.type.kind())));
    }
    return {};
  }

  Status checkPlace(const Region& region, int64_t offset) const {
    if (!program_.placed()) {
      if (offset != Allocated::kUnplaced) return bad("has an offset in an arena that is not placed");
      return {};
    }
    if (offset < 0 || offset % Program::kAlignment != 0) return bad(fmt::format("offset {} is not aligned", offset));
    if (offset > program_.arenaBytes || region.type.bytes() > program_.arenaBytes - offset)
      return bad(fmt::format("{} bytes at {} do not lie inside the arena of {} bytes", region.type.bytes(), offset,
                             program_.arenaBytes));
    return {};
  }

  void checkKnown(const Instr& instr) const {
    const auto regionCount = static_cast<RegionId>(program_.regions.size());
    const auto known = [&](RegionId id) { return id >= kNoRegion && id < regionCount; };
    AGLOW_CHECK(known(instr.predicate) && std::all_of(instr.operands.begin(), instr.operands.end(),
                                                      [&](const Operand& o) { return known(o.region); }),
                "an instruction names a region that does not exist");
  }

  Status checkInstr(const Instr& instr) {
    checkKnown(instr);
    AGLOW_OK(checkNoLocals(instr));
    if (instr.kind != Instr::Kind::Fused && !instr.body.empty()) return bad("only fused instructions have a body");
    if (instr.plan && !instr.computes()) return bad("only instructions that compute have a plan");
    switch (instr.kind) {
      case Instr::Kind::Compute:
        AGLOW_OK(checkCompute(instr));
        AGLOW_OK(verifyPlan(program_, instr));
        break;
      case Instr::Kind::Fused:
        AGLOW_OK(checkFused(instr));
        AGLOW_OK(verifyPlan(program_, instr));
        break;
      case Instr::Kind::Alloc:
        return begin(instr);
      case Instr::Kind::Dealloc:
        return end(instr);
      case Instr::Kind::TensorView:
        return beginView(instr);
      case Instr::Kind::Copy:
      case Instr::Kind::CopyStart:
        AGLOW_OK(checkCopy(instr));
        break;
      case Instr::Kind::CopyWait:
        AGLOW_OK(wait(instr));
        AGLOW_OK(checkPredicate(instr));
        return instr.predicate == kNoRegion ? Status() : read(instr.predicate);
    }
    AGLOW_OK(checkPredicate(instr));
    AGLOW_OK(touch(instr));
    if (instr.kind == Instr::Kind::CopyStart && !inFlight_.emplace(instr.token, &instr).second)
      return bad(fmt::format("token {} belongs to a copy that is not waited for yet", instr.token));
    return {};
  }

  // Whatever runs at the same time touches nothing that one of it writes.
  Status checkBeside(size_t number) const {
    const Instr& instr = program_.instrs[number];
    if (!instr.beside) return {};
    if (!mayBeBeside(instr)) return bad("nothing but an operator or a copy without a predicate runs beside another");
    size_t first = number;
    while (first > 0 && program_.instrs[first].beside) --first;
    if (first == number || !mayBeBeside(program_.instrs[first]) || program_.instrs[first].chained)
      return bad("there is no instruction directly before it that it could run beside");
    if (number - first >= kMostBeside) return bad(fmt::format("more than {} instructions side by side", kMostBeside));
    for (size_t other = first; other < number; ++other)
      if (!independent(extents_, instr, program_.instrs[other]))
        return bad(fmt::format("it runs beside instruction {}, and one writes what the other touches", other));
    return {};
  }

  // Parts of what is chained go by themselves.
  Status checkChained(size_t number) const {
    const Instr& instr = program_.instrs[number];
    if (!instr.chained) return {};
    if (instr.beside) return bad("it cannot run beside others and be chained to them");
    size_t first = number;
    while (first > 0 && program_.instrs[first].chained) --first;
    if (first == number || program_.instrs[first].isMarker() || program_.instrs[first].beside)
      return bad("there is no instruction directly before it that it could be chained to");
    if (number - first >= kMostChained) return bad(fmt::format("more than {} instructions in a chain", kMostChained));
    for (size_t other = first; other <= number; ++other) {
      if (program_.instrs[other].predicate != kNoRegion) return bad("only what is without a predicate is in a chain");
      AGLOW_OK(checkCut(program_, program_.instrs[other]));
    }
    for (size_t other = first; other < number; ++other)
      if (!partByPart(extents_, instr, program_.instrs[other]))
        return bad(
            fmt::format("it is chained to instruction {}, and a part of one touches what another part of the "
                        "other writes",
                        other));
    return {};
  }

  Status begin(const Instr& instr) {
    AGLOW_CHECK(instr.operands.size() == 1, "a mark has one operand");
    const RegionId id = instr.operands[0].region;
    const auto* allocated = at(id).as<Allocated>();
    if (allocated == nullptr) return bad(fmt::format("{} is not allocated memory", name(id)));
    if (state(id).life != Life::Unborn) return bad(fmt::format("{} is allocated twice", name(id)));
    state(id).life = Life::Alive;
    if (!program_.placed() || at(id).type.bytes() == 0) return {};
    const int64_t from = allocated->offset, to = from + at(id).type.bytes();
    const auto next = live_.lower_bound(from);
    const auto clash = [&](RegionId other) {
      return bad(fmt::format("{} at {} overlaps {} at {}, which is alive", name(id), from, name(other),
                             at(other).as<Allocated>()->offset));
    };
    if (next != live_.end() && next->first < to) return clash(next->second);
    if (next != live_.begin()) {
      const RegionId before = std::prev(next)->second;
      if (std::prev(next)->first + at(before).type.bytes() > from) return clash(before);
    }
    live_.emplace(from, id);
    return {};
  }

  Status end(const Instr& instr) {
    AGLOW_CHECK(instr.operands.size() == 1, "a mark has one operand");
    const RegionId id = instr.operands[0].region;
    if (at(id).as<Allocated>() == nullptr) return bad(fmt::format("{} is not allocated memory", name(id)));
    AGLOW_OK(checkAlive(id));
    AGLOW_OK(checkInFlight(extent(id), true));
    state(id).life = Life::Dead;
    if (program_.placed() && at(id).type.bytes() > 0) live_.erase(at(id).as<Allocated>()->offset);
    return {};
  }

  Status beginView(const Instr& instr) {
    AGLOW_CHECK(instr.operands.size() == 1, "a mark has one operand");
    const RegionId id = instr.operands[0].region;
    const auto* view = at(id).as<ViewOf>();
    if (view == nullptr) return bad(fmt::format("{} is not a view", name(id)));
    if (state(id).life != Life::Unborn) return bad(fmt::format("{} is defined twice", name(id)));
    AGLOW_OK(checkAlive(view->base));
    state(id).life = Life::Alive;
    return {};
  }

  Status checkAlive(RegionId id) {
    for (const RegionId part : {id, extent(id).root}) {
      if (state(part).life == Life::Unborn) return bad(fmt::format("{} is used before it is allocated", name(part)));
      if (state(part).life == Life::Dead) return bad(fmt::format("{} is used after its dealloc", name(part)));
    }
    return {};
  }

  Status checkCompute(const Instr& instr) const {
    const OpDef& op = instr.attrs.op();
    if (op.kind == OpKind::Storage || op.kind == OpKind::View)
      return bad(fmt::format("{} is not an instruction", op.name));
    const auto results = static_cast<size_t>(op.out.size());
    if (instr.operands.size() < results)
      return bad(fmt::format("{} has {} results, found {} operands", op.name, results, instr.operands.size()));
    for (size_t i = 0; i < results; ++i) {
      const Operand& operand = instr.operands[i];
      if ((operand.region == kNoRegion && !mayBeAbsent(op, i)) ||
          (operand.access != Access::Out && operand.access != Access::InOut))
        return bad("a result is @out or @inout");
    }
    std::vector<const Type*> types;
    for (const Operand& operand : instr.inputs()) {
      if (operand.access != Access::In) return bad("operands after the results are @in, then @scratch");
      types.push_back(operand.region == kNoRegion ? nullptr : &at(operand.region).type);
    }
    Result<std::vector<Type>> inferred = inferTypes(instr.attrs, types);
    if (!inferred.ok()) return bad(inferred.error().message);
    for (size_t i = 0; i < results; ++i) {
      if (instr.operands[i].region == kNoRegion) continue;
      if (const Type& type = at(instr.operands[i].region).type; type != (*inferred)[i])
        return bad(fmt::format("result {} is {}, expected {}", i, type.text(), (*inferred)[i].text()));
    }
    return checkOverlap(instr);
  }

  bool isLocal(RegionId id) const { return id != kNoRegion && at(id).as<Local>() != nullptr; }

  Status checkNoLocals(const Instr& instr) const {
    for (const Operand& operand : instr.operands)
      if (isLocal(operand.region))
        return bad(fmt::format("{} belongs to the body of an instruction", name(operand.region)));
    if (isLocal(instr.predicate)) return bad(fmt::format("{} is a local, not a predicate", name(instr.predicate)));
    return {};
  }

  // The body runs as one loop, touches what the operands say, and writes every region once.
  Status checkFused(const Instr& instr) {
    std::unordered_set<RegionId> written;
    for (const Instr& step : instr.body) {
      Status status = checkStep(step, written);
      if (!status.ok()) return std::move(status).error().at(print(program_, step));
    }
    AGLOW_OK(formOf(program_, bodySteps(instr)));
    const std::vector<Operand> operands = operandsOf(program_, instr.body);
    if (!std::equal(operands.begin(), operands.end(), instr.operands.begin(), instr.operands.end(),
                    [](const Operand& a, const Operand& b) { return a.region == b.region && a.access == b.access; })) {
      Instr expected{.kind = Instr::Kind::Fused, .operands = operands};
      return bad("the operands are not what the body touches: " + print(program_, expected));
    }
    if (instr.results().empty()) return bad("the body writes nothing outside");
    for (const RegionId id : written)
      if (isLocal(id)) state(id).life = Life::Dead;
    return checkFusedOverlap(instr);
  }

  Status checkStep(const Instr& step, std::unordered_set<RegionId>& written) {
    checkKnown(step);
    if (step.kind != Instr::Kind::Compute || !step.body.empty()) return bad("a body has operators alone");
    if (step.predicate != kNoRegion) return bad("the predicate belongs to the instruction as a whole");
    if (step.plan) return bad("the plan belongs to the instruction as a whole");
    AGLOW_OK(checkCompute(step));
    for (const Operand& operand : step.operands)
      if (operand.access == Access::In && isLocal(operand.region) && !written.contains(operand.region))
        return bad(fmt::format("{} is read before it is written", name(operand.region)));
    for (const Operand& operand : step.operands) {
      if (operand.access == Access::In) continue;
      if (!written.insert(operand.region).second) return bad(fmt::format("{} is written twice", name(operand.region)));
      if (!isLocal(operand.region)) continue;
      if (operand.access != Access::Out)
        return bad(fmt::format("a local is @out or @in, not {}", name(operand.region)));
      if (state(operand.region).life == Life::Dead)
        return bad(fmt::format("{} belongs to another instruction", name(operand.region)));
    }
    return {};
  }

  Status checkFusedOverlap(const Instr& instr) const {
    const std::span<const Operand> operands = instr.operands;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!writes(operands[i].access)) continue;
      const RegionId mine = operands[i].region;
      for (size_t j = 0; j < operands.size(); ++j)
        if (i != j && extent(mine).overlaps(extent(operands[j].region)))
          return bad(fmt::format("{} overlaps {}", name(mine), name(operands[j].region)));
      if (operands[i].access == Access::InOut && !mayOverwriteInBody(program_, instr, mine, mine))
        return bad(fmt::format("{} is written before the body is done with what it held", name(mine)));
      if (instr.predicate != kNoRegion && extent(mine).overlaps(extent(instr.predicate)))
        return bad(fmt::format("{} overlaps the predicate", name(mine)));
    }
    return {};
  }

  // What an instruction writes overlaps nothing else it touches, but an operand that it may overwrite in place.
  Status checkOverlap(const Instr& instr) const {
    const std::span<const Operand> operands = instr.operands;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!writes(operands[i].access) || operands[i].region == kNoRegion) continue;
      bool inPlace = false;
      for (size_t j = 0; j < operands.size(); ++j) {
        if (i == j || operands[j].region == kNoRegion) continue;
        const Extent &mine = extent(operands[i].region), &other = extent(operands[j].region);
        if (!mine.overlaps(other)) continue;
        const size_t results = instr.results().size();
        if (i != 0 || operands[i].access != Access::InOut || operands[j].access != Access::In || mine != other ||
            !mayOverwrite(program_, instr, j - results))
          return bad(fmt::format("{} overlaps {}", name(operands[i].region), name(operands[j].region)));
        inPlace = true;
      }
      if (operands[i].access == Access::InOut && !inPlace && at(operands[i].region).type.bytes() > 0)
        return bad(fmt::format("{} is @inout, but no operand shares its memory", name(operands[i].region)));
      if (instr.predicate != kNoRegion && extent(operands[i].region).overlaps(extent(instr.predicate)))
        return bad(fmt::format("{} overlaps the predicate", name(operands[i].region)));
    }
    return {};
  }

  Status checkCopy(const Instr& instr) const {
    if (instr.operands.size() != 2 || instr.operands[0].access != Access::Out ||
        instr.operands[1].access != Access::In || instr.operands[0].region == kNoRegion ||
        instr.operands[1].region == kNoRegion)
      return bad("a copy has a destination (@out) and a source (@in)");
    const RegionId to = instr.operands[0].region, from = instr.operands[1].region;
    if (at(to).type != at(from).type)
      return bad(fmt::format("a copy from {} to {}", at(from).type.text(), at(to).type.text()));
    if (extent(to).overlaps(extent(from))) return bad(fmt::format("{} overlaps {}", name(to), name(from)));
    return {};
  }

  Status checkPredicate(const Instr& instr) const {
    if (instr.predicate == kNoRegion) return {};
    const Type& type = at(instr.predicate).type;
    if (type.kind() == ElemKind::Bool && type.rank() <= 1) return {};
    return bad(fmt::format("the predicate is {}, expected bool[] or bool[n]", type.text()));
  }

  // Reads before writes, so that an operand's old bytes are what is read.
  Status touch(const Instr& instr) {
    if (instr.predicate != kNoRegion) AGLOW_OK(read(instr.predicate));
    for (const Operand& operand : instr.operands)
      if (operand.region != kNoRegion && reads(operand.access)) AGLOW_OK(read(operand.region));
    for (const Operand& operand : instr.operands)
      if (operand.region != kNoRegion && writes(operand.access)) AGLOW_OK(write(operand));
    return {};
  }

  Status read(RegionId id) {
    AGLOW_OK(checkAlive(id));
    const Extent& bytes = extent(id);
    AGLOW_OK(checkInFlight(bytes, false));
    if (!state(bytes.root).written.contains(bytes.begin, bytes.end))
      return bad(fmt::format("{} is read before it is written", name(id)));
    return {};
  }

  Status write(const Operand& operand) {
    AGLOW_OK(checkAlive(operand.region));
    const Extent& bytes = extent(operand.region);
    AGLOW_OK(checkInFlight(bytes, true));
    const auto* placeholder = at(bytes.root).as<PlaceholderInit>();
    if (at(bytes.root).as<ConstantInit>() != nullptr || (placeholder != nullptr && !writes(placeholder->access)))
      return bad(fmt::format("{} is written, but may only be read", name(bytes.root)));
    ByteSet& written = state(bytes.root).written;
    if (operand.access == Access::Scratch)
      written.remove(bytes.begin, bytes.end);
    else
      written.add(bytes.begin, bytes.end);
    return {};
  }

  Status checkInFlight(const Extent& bytes, bool writing) const {
    for (const auto& [token, start] : inFlight_) {
      const RegionId to = start->operands[0].region, from = start->operands[1].region;
      if (bytes.overlaps(extent(to)) || (writing && bytes.overlaps(extent(from))))
        return bad(fmt::format("{} is touched while copy {} is under way", name(bytes.root), token));
    }
    return {};
  }

  Status wait(const Instr& instr) {
    const auto it = inFlight_.find(instr.token);
    if (it == inFlight_.end()) return bad(fmt::format("no copy with token {} is under way", instr.token));
    const std::vector<Operand>& started = it->second->operands;
    const bool same =
        std::equal(started.begin(), started.end(), instr.operands.begin(), instr.operands.end(),
                   [](const Operand& a, const Operand& b) { return a.region == b.region && a.access == b.access; });
    if (!same) return bad(fmt::format("copy {} was started with other operands", instr.token));
    inFlight_.erase(it);
    return {};
  }

  Status checkEnd() {
    if (!inFlight_.empty()) return bad(fmt::format("copy {} is never waited for", inFlight_.begin()->first));
    for (size_t i = 0; i < program_.regions.size(); ++i) {
      const auto id = static_cast<RegionId>(i);
      if (state(id).life == Life::Unborn)
        return bad(fmt::format("{} is never {}", name(id), isLocal(id) ? "written" : "allocated"));
      if (at(id).as<Allocated>() != nullptr && state(id).life == Life::Alive)
        return bad(fmt::format("{} has no dealloc", name(id)));
      const auto* placeholder = at(id).as<PlaceholderInit>();
      if (placeholder != nullptr && !state(id).written.contains(0, at(id).type.bytes()))
        return bad(fmt::format("output {} is not written", name(id)));
    }
    return {};
  }

  const Program& program_;
  std::vector<Extent> extents_;
  std::vector<State> state_;
  std::map<int64_t, const Instr*> inFlight_;  // by token
  std::map<int64_t, RegionId> live_;          // placed buffers by offset
};

}  // namespace

Status verify(const Program& program) { return Verifier(program).run(); }

Status verify(std::span<const Program> programs) {
  std::unordered_set<std::string_view> names;
  std::unordered_map<std::string_view, const Region*> shared;
  for (const Program& program : programs) {
    if (!names.insert(program.name).second) return bad(fmt::format("two programs are named {}", quoted(program.name)));
    Status status = verify(program);
    for (const Region& region : program.regions) {
      if (!status.ok()) break;
      if (!region.declared()) continue;
      const auto [it, fresh] = shared.try_emplace(region.name, &region);
      if (!fresh && !sameStorage(*it->second, region))
        status = bad(fmt::format("{} is another region in a program before", quoted(region.name)));
    }
    if (!status.ok() && programs.size() > 1)
      return std::move(status).error().at(fmt::format("program {}", quoted(program.name)));
    AGLOW_OK(std::move(status));
  }
  return {};
}

}  // namespace aglow
