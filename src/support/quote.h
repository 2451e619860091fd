// Names from files, made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace aglow {

// In single quotes, with control bytes as \xNN and long names cut in the middle; other bytes stay as they are.
std::string quoted(std::string_view name);

}  // namespace aglow
