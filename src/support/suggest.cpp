// Edit distance between short words, as far as a hint needs it.
#include "support/suggest.h"

#include <algorithm>
#include <array>

namespace aglow {

namespace {

// Longer words are not typing mistakes, and cost a table of their product.
constexpr size_t kLongest = 63;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Letters added, dropped, changed, or swapped with their neighbour. Three rows of the table are enough.
size_t distance(std::string_view a, std::string_view b) {
  using Row = std::array<size_t, kLongest + 1>;
  Row before{}, last{}, row{};
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = lower(a[i - 1]);
      const char y = lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (x == y ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y;
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  if (word.empty() || word.size() > kLongest) return best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t gap = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (candidate.empty() || candidate.size() > kLongest || gap >= least) continue;
    const size_t far = distance(word, candidate);
    if (far >= least) continue;
    least = far;
    best = candidate;
  }
  return best;
}

std::string didYouMean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view found = nearest(word, candidates);
  return found.empty() ? std::string() : "did you mean '" + std::string(found) + "'?";
}

}  // namespace aglow
