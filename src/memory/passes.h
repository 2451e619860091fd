// The passes over a program's memory. Each keeps the program valid and its results the same, and reports whether
// anything changed.
#pragma once

#include "inst/program.h"

namespace aglow {

// Instructions get the working memory that their plans ask for.
Result<bool> addScratch(Program& program);
// Slices and concatenations of whole stretches, and transposes that move nothing, become copies from and to views.
Result<bool> movesToCopies(Program& program);
// Copies whose source can be computed where the copy goes, or read where it comes from, go away.
Result<bool> removeCopies(Program& program);
// Results overwrite an operand that nobody needs afterwards, where the record allows it.
Result<bool> shareInPlace(Program& program);
// Instructions whose results nobody reads go away.
Result<bool> removeDeadStores(Program& program);
// Independent instructions that have plans become neighbours that may run at the same time, where that is worth it and
// takes no more memory.
Result<bool> putBeside(Program& program);
// Buffers are allocated as late and given back as early as can be.
Result<bool> tightenLifetimes(Program& program);

}  // namespace aglow
