// Graphs as Graphviz drawings.
#pragma once

#include <string>
#include <string_view>

#include "graph/module.h"

namespace aglow {

// Nodes coloured by what becomes of their operator, storage as boxes, edges with their types; predicates are dashed.
std::string drawDot(const Module& module);
// One function, with the storage it uses.
std::string drawDot(const Function& function);

// A text inside of the quotes of a label, as valid UTF-8.
std::string escapeDot(std::string_view text);

}  // namespace aglow
