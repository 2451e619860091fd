// Names from files, made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace aglow {

// Control bytes as \xNN and long names cut in the middle; other bytes stay as they are.
std::string shown(std::string_view name);
// The same in single quotes.
std::string quoted(std::string_view name);

}  // namespace aglow
