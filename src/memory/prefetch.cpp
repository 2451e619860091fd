// Copies between host and device moved away from what waits for them.
#include <algorithm>
#include <map>
#include <set>

#include "inst/banks.h"
#include "inst/beside.h"
#include "inst/lifetimes.h"
#include "memory/place.h"
#include "memory/transfers.h"
#include "support/sizes.h"

namespace aglow {

namespace {

// A copy, apart from the instructions between which it stands. Positions are numbers of instructions that it stands
// before.
struct Move {
  Instr start, wait;
  bool in = false;            // from the host
  int32_t from = 0;           // position of the start
  int32_t to = 0;             // position of the wait
  int64_t bytes = 0;          // that its buffer takes
  RegionId root = kNoRegion;  // of the buffer
};

// First and last instruction that touches a buffer.
struct Span {
  int32_t first = -1, last = -1;

  void add(int32_t at) {
    first = first < 0 ? at : std::min(first, at);
    last = std::max(last, at);
  }
};

// Copies that keep their places: those that may be left out, and those over which another instruction would have to
// jump that needs what the bytes held before, or comes to need what they hold afterwards. Tokens belong to one copy
// each.
std::set<int64_t> fixedCopies(const Program& program, const Banks& banks, std::span<const Extent> extents) {
  constexpr int64_t kNoCopy = -1;
  struct Touch {
    size_t at = 0;
    int64_t copy = kNoCopy;
    bool writes = false;
  };
  std::vector<std::vector<Touch>> touches(program.regions.size());  // by the root of a region
  const auto of = [&](const Operand& operand) -> std::vector<Touch>& {
    return touches[static_cast<size_t>(extents[static_cast<size_t>(operand.region)].root)];
  };
  std::map<int64_t, std::pair<size_t, size_t>> copies;  // start and wait, by token
  for (size_t at = 0; at < program.instrs.size(); ++at) {
    const Instr& instr = program.instrs[at];
    if (instr.isMarker()) continue;
    const bool travels = banks.travels(instr);
    if (travels && instr.kind == Instr::Kind::CopyStart) copies[instr.token].first = at;
    if (travels && instr.kind == Instr::Kind::CopyWait) copies[instr.token].second = at;
    const auto note = [&](const Operand& operand) {
      if (operand.region != kNoRegion)
        of(operand).push_back({at, travels ? instr.token : kNoCopy, writes(operand.access)});
    };
    for (const Operand& operand : instr.operands) note(operand);
    note({instr.predicate, Access::In});
  }
  std::set<int64_t> fixed;
  for (const auto& [token, place] : copies) {
    const auto start = place.first, wait = place.second;
    const Instr& copy = program.instrs[start];
    const bool in = banks.inHost(copy.operands[1].region);
    const auto& buffer = of(copy.operands[in ? 0 : 1]);
    const auto& host = of(copy.operands[in ? 1 : 0]);
    const auto hinders = [&, own = token, end = in ? wait : start](const std::vector<Touch>& all, bool reads) {
      return std::any_of(all.begin(), all.end(), [&](const Touch& touch) {
        return touch.copy != own && (in ? touch.at < end : touch.at > end) && (touch.writes || reads);
      });
    };
    // What has just come is not sent on before it is there.
    const auto next = std::find_if(buffer.begin(), buffer.end(), [&](const Touch& t) { return t.at >= start; });
    const bool relays = !in && next != buffer.begin() && std::prev(next)->copy != kNoCopy;
    const bool always = copy.predicate == kNoRegion && program.instrs[wait].predicate == kNoRegion;
    if (!always || relays || hinders(buffer, in) || hinders(host, !in)) fixed.insert(token);
  }
  return fixed;
}

class Schedule {
public:
  explicit Schedule(Program& program) : program_(program) {
    forgetBeside(program);
    const Banks banks(program);
    const std::vector<Extent> extents = program.extents();
    const std::set<int64_t> fixed = fixedCopies(program, banks, extents);
    const auto rootOf = [&](RegionId id) { return extents[static_cast<size_t>(id)].root; };
    std::map<int64_t, size_t> underWay;  // by token
    for (Instr& instr : program.instrs) {
      if (instr.isMarker()) continue;
      if (!banks.travels(instr) || fixed.contains(instr.token)) {
        rest_.push_back(std::move(instr));
        continue;
      }
      if (instr.kind == Instr::Kind::CopyWait) {
        Move& move = moves_[underWay.at(instr.token)];
        move.to = static_cast<int32_t>(rest_.size());
        move.wait = std::move(instr);
        continue;
      }
      underWay[instr.token] = moves_.size();
      const bool in = banks.inHost(instr.operands[1].region);
      const RegionId root = rootOf(instr.operands[in ? 0 : 1].region);
      moves_.push_back({.start = std::move(instr),
                        .wait = {},
                        .in = in,
                        .from = static_cast<int32_t>(rest_.size()),
                        .bytes = alignUp(program[root].type.bytes(), Program::kAlignment),
                        .root = root});
    }
    spans_.resize(program.regions.size());
    for (int32_t at = 0; at < count(); ++at) {
      const Instr& instr = rest_[static_cast<size_t>(at)];
      for (const Operand& operand : instr.operands)
        if (operand.region != kNoRegion) spanOf(rootOf(operand.region)).add(at);
      if (instr.predicate != kNoRegion) spanOf(rootOf(instr.predicate)).add(at);
    }
    // What the copies themselves need, as they stand right beside what they are for.
    live_.resize(rest_.size() + 1);
    for (Move& move : moves_) {
      if (move.in)
        move.from = move.to;
      else
        move.to = move.from;
      if (spanOf(move.root).first < 0) spanOf(move.root).add(std::min(move.from, std::max(count() - 1, 0)));
    }
    for (size_t id = 0; id < spans_.size(); ++id)
      if (program.regions[id].as<Allocated>() != nullptr && spans_[id].first >= 0)
        for (int32_t at = spans_[id].first; at <= spans_[id].last; ++at)
          live_[static_cast<size_t>(at)] += alignUp(program.regions[id].type.bytes(), Program::kAlignment);
  }

  // In the order in which they are needed, so that none delays one that is needed before.
  void hoist(int64_t bytes) {
    std::vector<Move*> in;
    for (Move& move : moves_)
      if (move.in) in.push_back(&move);
    std::stable_sort(in.begin(), in.end(), [](const Move* a, const Move* b) { return a->to < b->to; });
    int32_t before = 0;
    for (Move* move : in) {
      while (move->from > before && takes(move->from - 1, move->bytes, bytes)) --move->from;
      before = move->from;
    }
    order_ = std::move(in);
    for (Move& move : moves_) {
      if (move.in) continue;
      while (move.to < count() && (move.to <= spanOf(move.root).last || takes(move.to, move.bytes, bytes))) ++move.to;
    }
  }

  void write() {
    std::vector<Instr> instrs;
    const auto put = [&](Instr& instr) { instrs.push_back(std::move(instr)); };
    for (int32_t at = 0; at <= count(); ++at) {
      for (Move& move : moves_)
        if (!move.in && move.from == at) put(move.start);
      for (Move& move : moves_)
        if (!move.in && move.to == at) put(move.wait);
      for (Move* move : order_)
        if (move->from == at) put(move->start);
      for (Move* move : order_)
        if (move->to == at) put(move->wait);
      if (at < count()) put(rest_[static_cast<size_t>(at)]);
    }
    program_.instrs = std::move(instrs);
    markLifetimes(program_);
  }

  bool any() const { return !moves_.empty(); }

private:
  int32_t count() const { return static_cast<int32_t>(rest_.size()); }
  Span& spanOf(RegionId id) { return spans_[static_cast<size_t>(id)]; }

  // Room for more bytes at an instruction, which are taken.
  bool takes(int32_t at, int64_t more, int64_t bytes) {
    int64_t& live = live_[static_cast<size_t>(at)];
    if (more > bytes - live) return false;
    live += more;
    return true;
  }

  Program& program_;
  std::vector<Instr> rest_;  // all but marks and copies from and to the host that may move
  std::vector<Move> moves_;
  std::vector<Move*> order_;   // those from the host, in the order in which they begin
  std::vector<Span> spans_;    // by region: of buffers, among the rest
  std::vector<int64_t> live_;  // by instruction
};

}  // namespace

bool prefetchCopies(Program& program, int64_t arenaBytes) {
  // Where buffers do not lie as closely as they could, copies begin a little later.
  constexpr int kAttempts = 12;
  const Program given = program;
  int64_t target = arenaBytes;
  for (int attempt = 0; attempt < kAttempts && target > 0; ++attempt) {
    Schedule schedule(program);
    if (schedule.any()) {
      schedule.hoist(target);
      schedule.write();
      if (placeArena(program, arenaBytes).ok() && program.arenaBytes <= arenaBytes) return !(program == given);
    }
    if (!schedule.any()) break;
    target -= std::max(program.arenaBytes - arenaBytes, Program::kAlignment);
    program = given;
  }
  program = given;
  return false;
}

}  // namespace aglow
