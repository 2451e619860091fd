#include "inst/beside.h"

namespace aglow {

size_t besideEnd(std::span<const Instr> instrs, size_t first) {
  size_t end = first + 1;
  while (end < instrs.size() && instrs[end].beside) ++end;
  return end;
}

bool mayBeBeside(const Instr& instr) {
  return (instr.computes() || instr.kind == Instr::Kind::Copy) && instr.predicate == kNoRegion;
}

bool independent(std::span<const Extent> extents, const Instr& a, const Instr& b) {
  for (const Operand& mine : a.operands)
    for (const Operand& other : b.operands) {
      if (mine.region == kNoRegion || other.region == kNoRegion || !(writes(mine.access) || writes(other.access)))
        continue;
      if (extents[static_cast<size_t>(mine.region)].overlaps(extents[static_cast<size_t>(other.region)])) return false;
    }
  // Predicates are read.
  const auto spares = [&](const Instr& one, RegionId predicate) {
    if (predicate == kNoRegion) return true;
    for (const Operand& operand : one.operands)
      if (operand.region != kNoRegion && writes(operand.access) &&
          extents[static_cast<size_t>(operand.region)].overlaps(extents[static_cast<size_t>(predicate)]))
        return false;
    return true;
  };
  return spares(a, b.predicate) && spares(b, a.predicate);
}

void forgetBeside(Program& program) {
  for (Instr& instr : program.instrs) instr.beside = instr.chained = false;
}

}  // namespace aglow
