// The lowering rules, one per composite record, as opgen's table names them. A missing one does not link.
#pragma once

#include "lower/lower.h"

namespace aglow::lowering {

#define AGLOW_ROW(name, function) LowerRule function;
#include "lower/lower_table.inc"
#undef AGLOW_ROW

}  // namespace aglow::lowering
