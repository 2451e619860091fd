#include "inst/rows.h"

#include <algorithm>

namespace aglow {

int64_t predicateRows(const Program& program, const Instr& instr) {
  if (instr.predicate == kNoRegion || !instr.computes() || program[instr.predicate].type.rank() != 1) return 0;
  const int64_t rows = program[instr.predicate].type.elements();
  const std::span<const Operand> results = instr.results();
  const bool match = std::all_of(results.begin(), results.end(), [&](const Operand& result) {
    if (result.region == kNoRegion) return true;
    const Type& type = program[result.region].type;
    return type.rank() > 0 && type.dim(0) == rows;
  });
  return rows > 1 && match ? rows : 0;
}

}  // namespace aglow
