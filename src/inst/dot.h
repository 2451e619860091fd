// Programs as Graphviz drawings.
#pragma once

#include <span>
#include <string>

#include "inst/program.h"

namespace aglow {

// Instructions in their order, regions beside them; arrows go from what is read and to what is written. Views are
// dashed lines to the regions they show.
std::string drawDot(const Program& program);
// Programs of one module, each in a frame, with what they share between them.
std::string drawDot(std::span<const Program> programs);

}  // namespace aglow
