// Predicates that speak of single rows of an instruction's results.
#pragma once

#include "inst/program.h"

namespace aglow {

// How many rows all results have along their first axis, where the predicate has a bool for each of them and there is
// more than one; 0 otherwise. A row whose bool is false may be anything.
int64_t predicateRows(const Program& program, const Instr& instr);

}  // namespace aglow
