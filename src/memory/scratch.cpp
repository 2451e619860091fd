// Working memory for the instructions whose plans ask for some. It lies in the arena, like everything else.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "inst/lifetimes.h"
#include "memory/passes.h"

namespace aglow {

Result<bool> addScratch(Program& program) {
  std::unordered_set<std::string> names;
  bool changed = false;
  for (Instr& instr : program.instrs) {
    const int64_t bytes = instr.plan ? instr.plan->scratchBytes : 0;
    if (bytes == 0 || instr.operands.back().access == Access::Scratch) continue;
    if (names.empty())
      for (const Region& region : program.regions) names.insert(region.name);
    changed = true;
    const std::string wanted = fmt::format("{}.scratch", program[instr.operands.front().region].name);
    std::string name = wanted;
    for (int number = 1; !names.insert(name).second; ++number) name = fmt::format("{}.{}", wanted, number);
    const Operand scratch{
        program.add({.name = name, .type = Type(ElemKind::UInt8, Shape{bytes}), .source = Allocated{}}),
        Access::Scratch};
    instr.operands.push_back(scratch);
    if (instr.kind == Instr::Kind::Fused) instr.body.front().operands.push_back(scratch);
  }
  if (changed) markLifetimes(program);
  return changed;
}

}  // namespace aglow
