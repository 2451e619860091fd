// Tight lifetimes, as a pass of its own for programs that come with looser ones.
#include "inst/lifetimes.h"

#include "memory/passes.h"

namespace aglow {

Result<bool> tightenLifetimes(Program& program) {
  const Program before = program;
  markLifetimes(program);
  return !(before == program);
}

}  // namespace aglow
