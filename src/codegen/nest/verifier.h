// What makes a nest valid.
#pragma once

#include "codegen/nest/nest.h"
#include "support/error.h"

namespace aglow::nest {

// BadVerify with the first fault: operands that are not there or out of sight, kinds that do not go together, accesses
// that leave their operand or move along a row where one value stands for it, reductions and rows read before they are
// complete.
Status verify(const Nest& nest);

}  // namespace aglow::nest
