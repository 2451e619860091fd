// The marks of a program: where buffers begin and end, where views are taken.
#pragma once

#include <vector>

#include "inst/program.h"

namespace aglow {

// The first and last instruction that touches the bytes of an allocated region, views included.
struct Lifetime {
  int32_t first = -1;  // none: nobody does
  int32_t last = -1;
};
// By region; only allocated ones have a lifetime. Marks do not count; instructions that may run at the same time, or
// part by part, count as the first of them.
std::vector<Lifetime> lifetimesOf(const Program& program);

// Sets all marks again, each alloc as late and each dealloc as early as can be (around instructions that may run at the
// same time or part by part, not between them), and drops constants, buffers and views
// that nobody uses. Regions are renumbered in the order of their appearance; the placement is forgotten.
void markLifetimes(Program& program);

}  // namespace aglow
