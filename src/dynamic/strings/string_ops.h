// Operators that look into strings, or make them.
#pragma once

#include "dynamic/strings/string_node.h"

namespace aglow::strings {

using Handler = Values(const Call&);

// Of the standard domain; null when there is none.
Handler* findHandler(std::string_view name);

}  // namespace aglow::strings
