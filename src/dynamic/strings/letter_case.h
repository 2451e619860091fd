// Upper and lower case of UTF-8 text.
#pragma once

#include <string>
#include <string_view>

namespace aglow::strings {

enum class LetterCase { Lower, Upper };

// Letter by letter; bytes that are not UTF-8 stay as they are. Of the locale only the language counts: "tr" and "az"
// know an i without a dot, and "C" and "POSIX" no letters but ASCII.
std::string inCase(std::string_view text, LetterCase to, std::string_view locale);

}  // namespace aglow::strings
