// Removal of instructions whose results nobody reads.
#include <algorithm>
#include <set>

#include "inst/lifetimes.h"
#include "memory/passes.h"

namespace aglow {

namespace {

// What outlives the program, and so is read by its caller or by the next run.
bool outlives(const Region& region) { return region.as<PlaceholderInit>() != nullptr || region.isState(); }

}  // namespace

Result<bool> removeDeadStores(Program& program) {
  const std::vector<Extent> extents = program.extents();
  const auto extent = [&](RegionId id) -> const Extent& { return extents[static_cast<size_t>(id)]; };
  std::vector<bool> needed(program.regions.size());  // whether somebody reads some of a region's bytes later
  for (size_t i = 0; i < needed.size(); ++i) needed[i] = outlives(program.regions[i]);

  std::set<int64_t> awaited;  // tokens of asynchronous copies that are waited for later

  std::vector<bool> dead(program.instrs.size());
  for (size_t i = program.instrs.size(); i-- > 0;) {
    const Instr& instr = program.instrs[i];
    if (instr.isMarker()) continue;
    dead[i] = std::none_of(instr.operands.begin(), instr.operands.end(), [&](const Operand& operand) {
      return (operand.access == Access::Out || operand.access == Access::InOut) && operand.region != kNoRegion &&
             needed[static_cast<size_t>(extent(operand.region).root)];
    });
    // An asynchronous copy is one write, at its start, and both of its instructions stay or go together.
    if (instr.kind == Instr::Kind::CopyStart) dead[i] = awaited.erase(instr.token) == 0;
    if (dead[i]) continue;
    if (instr.kind == Instr::Kind::CopyWait) awaited.insert(instr.token);
    // A write to all of a region ends the need for what it held; under a predicate it may be left out.
    for (const Operand& operand : instr.operands)
      if (operand.access == Access::Out && operand.region != kNoRegion && instr.predicate == kNoRegion &&
          instr.kind != Instr::Kind::CopyWait) {
        const Extent& bytes = extent(operand.region);
        if (bytes.end - bytes.begin == program[bytes.root].type.bytes())
          needed[static_cast<size_t>(bytes.root)] = false;
      }
    for (const Operand& operand : instr.operands)
      if (operand.region != kNoRegion && reads(operand.access))
        needed[static_cast<size_t>(extent(operand.region).root)] = true;
    if (instr.predicate != kNoRegion) needed[static_cast<size_t>(extent(instr.predicate).root)] = true;
  }
  if (std::find(dead.begin(), dead.end(), true) == dead.end()) return false;
  size_t next = 0;
  std::erase_if(program.instrs, [&](const Instr&) { return dead[next++]; });
  markLifetimes(program);
  return true;
}

}  // namespace aglow
