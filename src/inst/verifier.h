// The rules of a valid program. Checked after every pass in tests and debug builds.
#pragma once

#include "inst/program.h"

namespace aglow {

// Types and operands against the records, lifetimes, reads before writes, writes to what is only read, asynchronous
// copies, and, once placed, buffers that overlap. BadVerify with the instruction's number and text.
Status verify(const Program& program);

}  // namespace aglow
