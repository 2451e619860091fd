// Regular expressions in time linear to the text, whatever the pattern.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/error.h"

namespace aglow::strings {

// For each text 1 if all of it matches, else 0. BadNode when the pattern is none; UnsupportedFeature in a build without
// RE2.
Result<std::vector<int64_t>> fullMatches(const std::string& pattern, const std::vector<std::string>& texts);

}  // namespace aglow::strings
