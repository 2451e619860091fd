// "Did you mean ...?": the candidate closest to a mistyped word.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace aglow {

// The candidate with the fewest letters added, dropped, changed or swapped, letter case aside; empty when none is close
// enough to be meant. The first of equals wins.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "did you mean 'Conv'?", or nothing.
std::string didYouMean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace aglow
