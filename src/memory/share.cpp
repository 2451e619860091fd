// In-place computation.
#include "memory/buffers.h"
#include "memory/passes.h"

namespace aglow {

Result<bool> shareInPlace(Program& program) {
  Buffers buffers(program);
  for (int32_t at = 0; at < static_cast<int32_t>(program.instrs.size()); ++at) {
    const Instr& instr = program.instrs[static_cast<size_t>(at)];
    if (instr.kind != Instr::Kind::Compute || !instr.attrs.op().inPlace) continue;
    const RegionId result = instr.results()[0].region;
    const std::span<const Operand> inputs = instr.inputs();
    for (size_t i = 0; i < inputs.size(); ++i)
      if (mayOverwrite(program, instr, i) && buffers.moveInto(at, result, inputs[i].region)) break;
  }
  return buffers.commit();
}

}  // namespace aglow
