// Lifetimes of buffers, and the alloc, dealloc and tensorview instructions that mark them.
#include "inst/lifetimes.h"

#include <algorithm>

#include "inst/chain.h"

namespace aglow {

namespace {

template <class F>
void forEachRegion(const Instr& instr, F&& f) {
  for (const Operand& operand : instr.operands)
    if (operand.region != kNoRegion) f(operand.region);
  if (instr.predicate != kNoRegion) f(instr.predicate);
}

// Writes a program's regions and instructions again, with marks.
class Marker {
public:
  explicit Marker(Program& program) : old_(program), renumbered_(program.regions.size(), kNoRegion) {}

  void run() {
    std::erase_if(old_.instrs, [](const Instr& instr) { return instr.isMarker(); });
    extents_ = old_.extents();
    const std::vector<Lifetime> lifetimes = lifetimesOf(old_);
    keepDeclared();
    std::vector<Instr> core = std::move(old_.instrs);
    old_.instrs.clear();
    old_.instrs.reserve(core.size() * 3);
    for (size_t first = 0, end = 0; first < core.size(); first = end) {
      end = groupEnd(core, first);
      const auto group = std::span(core).subspan(first, end - first);
      for (const Instr& instr : group) forEachRegion(instr, [&](RegionId id) { begin(id); });
      ending_.clear();
      for (const Instr& instr : group)
        forEachRegion(instr, [&](RegionId id) {
          const RegionId root = extents_[static_cast<size_t>(id)].root;
          if (lifetimes[static_cast<size_t>(root)].last == static_cast<int32_t>(first))
            ending_.push_back(renumbered(root));
        });
      for (Instr& instr : group) {
        renumber(instr);
        old_.instrs.push_back(std::move(instr));
      }
      std::sort(ending_.begin(), ending_.end());
      ending_.erase(std::unique(ending_.begin(), ending_.end()), ending_.end());
      for (const RegionId id : ending_) mark(Instr::Kind::Dealloc, id, Access::Out);
    }
    old_.regions = std::move(regions_);
    old_.unplace();
  }

private:
  // Constants stay only if somebody reads them; what a caller binds stays in any case.
  void keepDeclared() {
    std::vector<bool> used(old_.regions.size());
    for (const Instr& instr : old_.instrs)
      forEachRegion(instr,
                    [&](RegionId id) { used[static_cast<size_t>(extents_[static_cast<size_t>(id)].root)] = true; });
    for (size_t i = 0; i < old_.regions.size(); ++i) {
      const Region& region = old_.regions[i];
      if (region.declared() && (used[i] || region.as<PlaceholderInit>() != nullptr)) keep(static_cast<RegionId>(i));
    }
  }

  RegionId renumbered(RegionId id) const { return id == kNoRegion ? kNoRegion : renumbered_[static_cast<size_t>(id)]; }

  // The body's regions are operands, which have begun, and locals.
  void renumber(Instr& instr) {
    for (Instr& step : instr.body) {
      forEachRegion(step, [&](RegionId id) {
        if (renumbered(id) == kNoRegion) keep(id);
      });
      renumber(step);
    }
    for (Operand& operand : instr.operands) operand.region = renumbered(operand.region);
    instr.predicate = renumbered(instr.predicate);
  }

  RegionId keep(RegionId id) {
    regions_.push_back(std::move(old_[id]));
    return renumbered_[static_cast<size_t>(id)] = static_cast<RegionId>(regions_.size() - 1);
  }

  // Views stand directly on the region that owns the bytes.
  void begin(RegionId id) {
    if (renumbered(id) != kNoRegion) return;
    const Extent extent = extents_[static_cast<size_t>(id)];
    if (extent.root == id) {
      mark(Instr::Kind::Alloc, keep(id), Access::Out);
      return;
    }
    begin(extent.root);
    const RegionId fresh = keep(id);
    regions_.back().source = ViewOf{renumbered(extent.root), extent.begin};
    mark(Instr::Kind::TensorView, fresh, Access::Out);
  }

  void mark(Instr::Kind kind, RegionId id, Access access) {
    old_.instrs.push_back({.kind = kind, .operands = {{id, access}}});
  }

  Program& old_;
  std::vector<Extent> extents_;
  std::vector<RegionId> renumbered_;
  std::vector<Region> regions_;
  std::vector<RegionId> ending_;
};

}  // namespace

std::vector<Lifetime> lifetimesOf(const Program& program) {
  std::vector<Lifetime> lifetimes(program.regions.size());
  const std::vector<Extent> extents = program.extents();
  for (int32_t at = 0, time = 0; at < static_cast<int32_t>(program.instrs.size()); ++at) {
    const Instr& instr = program.instrs[static_cast<size_t>(at)];
    if (instr.isMarker()) continue;
    if (!instr.beside && !instr.chained) time = at;
    forEachRegion(instr, [&](RegionId id) {
      const RegionId root = extents[static_cast<size_t>(id)].root;
      if (program[root].as<Allocated>() == nullptr) return;
      Lifetime& lifetime = lifetimes[static_cast<size_t>(root)];
      if (lifetime.first < 0) lifetime.first = time;
      lifetime.last = time;
    });
  }
  return lifetimes;
}

void markLifetimes(Program& program) { Marker(program).run(); }

}  // namespace aglow
