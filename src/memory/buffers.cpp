// Merging of buffers. Two regions may share bytes when what the one holds is no longer, or not yet, needed while the
// other one holds something else; the questions below ask that of the instructions between.
#include "memory/buffers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "inst/fused.h"
#include "support/sizes.h"

namespace aglow {

namespace {

// A question that would look at more touches is answered "touched": passes stay near linear.
constexpr size_t kMostTouches = 4096;

constexpr size_t kNoResult = std::numeric_limits<size_t>::max();
constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();

}  // namespace

Buffers::Buffers(Program& program) : program_(program), live_(static_cast<int32_t>(program.instrs.size())) {
  std::erase_if(program_.instrs, [](const Instr& instr) { return instr.isMarker(); });
  original_ = program_.extents();
  roots_.resize(program_.regions.size());
  for (int32_t at = 0; at < static_cast<int32_t>(program_.instrs.size()); ++at) {
    const Instr& instr = program_.instrs[static_cast<size_t>(at)];
    const auto note = [&](RegionId id, bool read, bool write) {
      if (id == kNoRegion) return;
      const Extent& bytes = original_[static_cast<size_t>(id)];
      if (read) root(bytes.root).reads.add(at, bytes.begin, bytes.end);
      if (write) root(bytes.root).writes.add(at, bytes.begin, bytes.end);
    };
    for (const Operand& operand : instr.operands) note(operand.region, reads(operand.access), writes(operand.access));
    note(instr.predicate, true, false);
  }
  const std::vector<Lifetime> lifetimes = lifetimesOf(program_);
  for (size_t i = 0; i < roots_.size(); ++i) {
    roots_[i].life = lifetimes[i];
    if (program_.regions[i].as<Allocated>() == nullptr || lifetimes[i].first < 0) continue;
    roots_[i].bytes = alignUp(program_.regions[i].type.bytes(), Program::kAlignment);
    live_.add(lifetimes[i].first, lifetimes[i].last, roots_[i].bytes);
  }
}

Extent Buffers::extent(RegionId id) const {
  Extent bytes = original_[static_cast<size_t>(id)];
  RegionId top = bytes.root;
  int64_t offset = 0;
  while (root(top).parent != kNoRegion) {
    offset += root(top).offset;
    top = root(top).parent;
  }
  // The path is shortened, so that long chains of merges are walked once.
  int64_t rest = offset;
  for (RegionId at = bytes.root; root(at).parent != kNoRegion && root(at).parent != top;) {
    Root& step = roots_[static_cast<size_t>(at)];
    const RegionId next = step.parent;
    const int64_t own = step.offset;
    step.parent = top;
    step.offset = rest;
    rest -= own;
    at = next;
  }
  return {top, bytes.begin + offset, bytes.end + offset};
}

bool Buffers::ownsAll(RegionId id) const {
  const Extent bytes = extent(id);
  const Region& owner = program_[bytes.root];
  return owner.as<Allocated>() != nullptr && bytes.begin == 0 && bytes.end == owner.type.bytes();
}

void Buffers::Touches::add(int32_t at, int64_t begin, int64_t end) {
  entries_.emplace_hint(entries_.end(), at, std::pair(begin - shift_, end - shift_));
}

void Buffers::Touches::join(Touches&& other, int64_t offset) {
  other.shift_ += offset;
  if (entries_.size() < other.entries_.size()) std::swap(*this, other);
  const int64_t shift = other.shift_ - shift_;
  for (const auto& [at, bytes] : other.entries_)
    entries_.emplace(at, std::pair(bytes.first + shift, bytes.second + shift));
  other = {};
}

bool Buffers::Touches::any(int64_t begin, int64_t end, int32_t from, int32_t to) const {
  size_t seen = 0;
  for (auto it = entries_.lower_bound(from); it != entries_.end() && it->first <= to; ++it)
    if ((it->second.first + shift_ < end && begin < it->second.second + shift_) || ++seen == kMostTouches) return true;
  return false;
}

bool Buffers::overwritable(const Instr& instr, size_t result, const Extent& bytes) const {
  const std::span<const Operand> results = instr.results(), inputs = instr.inputs();
  for (size_t i = 0; i < results.size(); ++i)
    if (i != result && results[i].region != kNoRegion && extent(results[i].region).overlaps(bytes)) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].region == kNoRegion || !extent(inputs[i].region).overlaps(bytes)) continue;
    if (extent(inputs[i].region) != bytes || !mayOverwrite(program_, instr, i, result)) return false;
  }
  return instr.predicate == kNoRegion || !extent(instr.predicate).overlaps(bytes);
}

size_t Buffers::resultIn(const Instr& instr, const Extent& bytes) const {
  if (instr.kind != Instr::Kind::Compute && instr.kind != Instr::Kind::Fused) return kNoResult;
  const std::span<const Operand> results = instr.results();
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].region != kNoRegion && extent(results[i].region) == bytes) return i;
  return kNoResult;
}

bool Buffers::moveInto(int32_t at, RegionId target, RegionId source) {
  if (!ownsAll(source)) return false;
  const Extent to = extent(target), from = extent(source);
  if (to.root == from.root || to.end - to.begin != from.end - from.begin) return false;
  const Instr& instr = program_.instrs[static_cast<size_t>(at)];
  const Root &mine = root(from.root), &other = root(to.root);
  if (instr.kind == Instr::Kind::Copy) {
    // Both hold the same from here on, as long as nobody writes to either.
    if (mine.writes.any(from.begin, from.end, at + 1, kEnd) ||
        other.writes.any(to.begin, to.end, at + 1, mine.life.last))
      return false;
  } else if (const size_t result = resultIn(instr, to);
             mine.life.last > at || result == kNoResult || !overwritable(instr, result, from)) {
    return false;
  }
  // Until here the target's bytes are free, but the first instruction may read them while it writes over them.
  const int32_t first = mine.life.first;
  if (other.writes.any(to.begin, to.end, first, at - 1) || other.reads.any(to.begin, to.end, first + 1, at))
    return false;
  if (other.reads.any(to.begin, to.end, first, first)) {
    const Instr& producer = program_.instrs[static_cast<size_t>(first)];
    const size_t result = resultIn(producer, from);
    if (first == at || result == kNoResult || !overwritable(producer, result, to)) return false;
  }
  return merge(from.root, to);
}

bool Buffers::readInstead(int32_t at, RegionId target, RegionId source) {
  if (!ownsAll(target)) return false;
  const Extent to = extent(target), from = extent(source);
  if (to.root == from.root || to.end - to.begin != from.end - from.begin) return false;
  const Root& mine = root(to.root);
  if (mine.writes.size() != 1 || mine.life.first != at) return false;
  if (root(from.root).writes.any(from.begin, from.end, at + 1, mine.life.last)) return false;
  return merge(to.root, from);
}

bool Buffers::merge(RegionId from, const Extent& into) {
  Root &gone = root(from), &kept = root(into.root);
  const int64_t before = live_.peak();
  Lifetime life = kept.life;
  const auto change = [&](int64_t sign) {
    live_.add(gone.life.first, gone.life.last, -sign * gone.bytes);
    live_.add(kept.life.first, kept.life.last, -sign * kept.bytes);
    live_.add(life.first, life.last, sign * kept.bytes);
  };
  if (life.first >= 0) life = {std::min(life.first, gone.life.first), std::max(life.last, gone.life.last)};
  change(1);
  if (live_.peak() > before) {
    change(-1);
    return false;
  }
  kept.reads.join(std::move(gone.reads), into.begin);
  kept.writes.join(std::move(gone.writes), into.begin);
  kept.life = life;
  gone.parent = into.root;
  gone.offset = into.begin;
  changed_ = true;
  return true;
}

void Buffers::tidy(Instr& instr) {
  for (Instr& step : instr.body) tidy(step);
  if (instr.kind == Instr::Kind::Fused) instr.operands = operandsOf(program_, instr.body);
  if (instr.kind != Instr::Kind::Compute) return;
  for (size_t i = 0; i < instr.results().size(); ++i)
    for (const Operand& input : instr.inputs())
      if (input.region != kNoRegion && input.region == instr.operands[i].region)
        instr.operands[i].access = Access::InOut;
}

bool Buffers::commit() {
  // Regions that come to be the same bytes under the same type become one, the owner of the bytes if it is among them.
  std::map<std::tuple<RegionId, int64_t, int64_t>, std::vector<RegionId>> sameBytes;
  std::vector<RegionId> substitute(program_.regions.size());
  const auto replaceBy = [&](RegionId id) {
    const Extent bytes = extent(id);
    std::vector<RegionId>& group = sameBytes[{bytes.root, bytes.begin, bytes.end}];
    for (const RegionId other : group)
      if (program_[other].type == program_[id].type) return other;
    group.push_back(id);
    return id;
  };
  for (const bool owners : {true, false})
    for (size_t i = 0; i < substitute.size(); ++i) {
      const auto id = static_cast<RegionId>(i);
      if ((extent(id).root == id) == owners) substitute[i] = replaceBy(id);
    }
  const auto substituted = [&](RegionId id) { return id == kNoRegion ? id : substitute[static_cast<size_t>(id)]; };

  std::erase_if(program_.instrs, [&](const Instr& instr) {
    return instr.kind == Instr::Kind::Copy && extent(instr.operands[0].region) == extent(instr.operands[1].region);
  });
  const auto substituteRegions = [&](Instr& instr) {
    for (Operand& operand : instr.operands) operand.region = substituted(operand.region);
    instr.predicate = substituted(instr.predicate);
  };
  for (Instr& instr : program_.instrs) {
    substituteRegions(instr);
    for (Instr& step : instr.body) substituteRegions(step);
    tidy(instr);
  }
  for (size_t i = 0; i < substitute.size(); ++i) {
    const auto id = static_cast<RegionId>(i);
    const Extent bytes = extent(id);
    if (bytes.root != id) program_[id].source = ViewOf{bytes.root, bytes.begin};
  }
  markLifetimes(program_);
  return changed_;
}

}  // namespace aglow
