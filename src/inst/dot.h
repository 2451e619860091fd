// Programs as Graphviz drawings.
#pragma once

#include <string>

#include "inst/program.h"

namespace aglow {

// Instructions in their order, regions beside them; arrows go from what is read and to what is written. Views are
// dashed lines to the regions they show.
std::string drawDot(const Program& program);

}  // namespace aglow
