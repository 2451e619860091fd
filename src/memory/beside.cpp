// Independent instructions become neighbours that may run at the same time, so that one barrier serves them all and
// threads that find nothing left to do in one of them go on with another.
#include <algorithm>
#include <numeric>

#include "inst/beside.h"
#include "inst/cost.h"
#include "inst/lifetimes.h"
#include "memory/live_bytes.h"
#include "memory/passes.h"
#include "support/sizes.h"

namespace aglow {

namespace {

// What instructions together give threads to do.
struct Work {
  double microseconds = 0;
  int64_t units = 0;

  // Many threads have enough to do that a barrier does not count, in pieces that can be shared evenly.
  bool fillsThreads() const {
    constexpr double kMuch = 16;
    constexpr int64_t kPieces = 4;
    return microseconds >= kMuch * kMostThreads && units >= kPieces * kMostThreads;
  }
  Work operator+(const Work& other) const { return {microseconds + other.microseconds, units + other.units}; }
};

// Instructions are numbered without marks; each has a time, which for members of one group is the number of the first.
class Grouping {
public:
  explicit Grouping(Program& program)
      : program_(program),
        extents_(program.extents()),
        count_(static_cast<int32_t>(program.instrs.size())),
        times_(program.instrs.size()),
        touching_(program.regions.size()),
        live_(count_) {
    std::iota(times_.begin(), times_.end(), 0);
    for (int32_t at = 0; at < count_; ++at) {
      for (const Operand& operand : instr(at).operands) note(at, operand.region);
      note(at, instr(at).predicate);
      work_.push_back({.microseconds = microsecondsOf(costOf(program, instr(at))),
                       .units = instr(at).plan ? instr(at).plan->units : kMostThreads});
    }
    for (const std::vector<int32_t>& touching : touching_) count(touching, 1);
    mostBytes_ = live_.peak();
  }

  bool run() {
    bool changed = false;
    for (int32_t first = 0; first < count_; ++first) {
      if (times_[static_cast<size_t>(first)] != first || !joinable(instr(first))) continue;
      changed = grow(first) || changed;
    }
    if (changed) write();
    return changed;
  }

private:
  // How far an instruction may lie from those that it joins.
  static constexpr int32_t kWindow = 48;

  const Instr& instr(int32_t at) const { return program_.instrs[static_cast<size_t>(at)]; }
  // Where a backend makes no plans, nothing is shared.
  static bool joinable(const Instr& instr) {
    return mayBeBeside(instr) && (instr.plan.has_value() || instr.kind == Instr::Kind::Copy);
  }

  void note(int32_t at, RegionId region) {
    if (region == kNoRegion) return;
    const RegionId root = extents_[static_cast<size_t>(region)].root;
    if (program_[root].as<Allocated>() == nullptr) return;
    std::vector<int32_t>& touching = touching_[static_cast<size_t>(root)];
    if (touching.empty() || touching.back() != at) touching.push_back(at);
  }

  // The bytes of the region that these touch, during its lifetime.
  void count(const std::vector<int32_t>& touching, int64_t sign) {
    if (touching.empty()) return;
    const auto root = static_cast<size_t>(&touching - touching_.data());
    int32_t first = count_, last = -1;
    for (const int32_t at : touching) {
      first = std::min(first, times_[static_cast<size_t>(at)]);
      last = std::max(last, times_[static_cast<size_t>(at)]);
    }
    live_.add(first, last, sign * alignUp(program_.regions[root].type.bytes(), Program::kAlignment));
  }

  // Those that can join the group of the instruction do, nearest first; whether any did.
  bool grow(int32_t first) {
    std::vector<int32_t> members = {first}, skipped;
    Work all = work_[static_cast<size_t>(first)];
    const int32_t end = std::min(first + kWindow, count_);
    for (int32_t at = first + 1; at < end && members.size() < kMostBeside; ++at) {
      if (times_[static_cast<size_t>(at)] != at) continue;  // has joined another
      const auto apart = [&](int32_t other) { return independent(extents_, instr(at), instr(other)); };
      const Work& mine = work_[static_cast<size_t>(at)];
      const bool joins = joinable(instr(at)) && !(all.fillsThreads() && mine.fillsThreads()) &&
                         std::all_of(members.begin(), members.end(), apart) &&
                         std::all_of(skipped.begin(), skipped.end(), apart) && move(at, first);
      if (joins) {
        members.push_back(at);
        all = all + mine;
      } else {
        skipped.push_back(at);
      }
    }
    if (members.size() > 1 && threadsWorth(all.microseconds) > 1) return true;
    for (const int32_t at : members) move(at, at);
    return false;
  }

  // Gives an instruction another time, unless more bytes than before all moves would be alive at some time.
  bool move(int32_t at, int32_t to) {
    const int32_t before = times_[static_cast<size_t>(at)];
    setTime(at, to);
    if (live_.peak() <= mostBytes_ || to == at) return true;
    setTime(at, before);
    return false;
  }

  void setTime(int32_t at, int32_t time) {
    std::vector<RegionId> roots;
    for (const Operand& operand : instr(at).operands)
      if (operand.region != kNoRegion) roots.push_back(extents_[static_cast<size_t>(operand.region)].root);
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    for (const RegionId root : roots) count(touching_[static_cast<size_t>(root)], -1);
    times_[static_cast<size_t>(at)] = time;
    for (const RegionId root : roots) count(touching_[static_cast<size_t>(root)], 1);
  }

  // The instructions in the order of their times.
  void write() {
    std::vector<int32_t> order(times_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return times_[static_cast<size_t>(a)] < times_[static_cast<size_t>(b)];
    });
    std::vector<Instr> instrs;
    instrs.reserve(order.size());
    for (const int32_t at : order) {
      instrs.push_back(std::move(program_.instrs[static_cast<size_t>(at)]));
      instrs.back().beside = times_[static_cast<size_t>(at)] != at;
    }
    program_.instrs = std::move(instrs);
  }

  Program& program_;
  std::vector<Extent> extents_;
  int32_t count_;
  std::vector<Work> work_;  // by instruction
  std::vector<int32_t> times_;
  std::vector<std::vector<int32_t>> touching_;  // by allocated region: the instructions that touch its bytes
  LiveBytes live_;
  int64_t mostBytes_ = 0;
};

}  // namespace

Result<bool> putBeside(Program& program) {
  forgetBeside(program);
  std::erase_if(program.instrs, [](const Instr& instr) { return instr.isMarker(); });
  const bool changed = Grouping(program).run();
  markLifetimes(program);
  return changed;
}

}  // namespace aglow
