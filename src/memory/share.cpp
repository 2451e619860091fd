// In-place computation.
#include "memory/buffers.h"
#include "memory/passes.h"

namespace aglow {

Result<bool> shareInPlace(Program& program) {
  Buffers buffers(program);
  for (int32_t at = 0; at < static_cast<int32_t>(program.instrs.size()); ++at) {
    const Instr& instr = program.instrs[static_cast<size_t>(at)];
    const bool compute = instr.kind == Instr::Kind::Compute;
    if (instr.kind != Instr::Kind::Fused && !(compute && instr.attrs.op().inPlace)) continue;
    const std::span<const Operand> results = instr.results(), inputs = instr.inputs();
    for (size_t r = 0; r < (compute ? 1 : results.size()); ++r)
      for (size_t i = 0; i < inputs.size(); ++i)
        if (mayOverwrite(program, instr, i, r) && buffers.moveInto(at, results[r].region, inputs[i].region)) break;
  }
  return buffers.commit();
}

}  // namespace aglow
