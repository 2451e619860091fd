// Removal of copies.
#include "memory/buffers.h"
#include "memory/passes.h"

namespace aglow {

Result<bool> removeCopies(Program& program) {
  Buffers buffers(program);
  // Backwards, so that of several copies from one source the last one, after which the source is free, comes first.
  for (auto at = static_cast<int32_t>(program.instrs.size()) - 1; at >= 0; --at) {
    const Instr& instr = program.instrs[static_cast<size_t>(at)];
    if (instr.kind != Instr::Kind::Copy) continue;
    const RegionId target = instr.operands[0].region, source = instr.operands[1].region;
    if (!buffers.moveInto(at, target, source)) buffers.readInstead(at, target, source);
  }
  return buffers.commit();
}

}  // namespace aglow
