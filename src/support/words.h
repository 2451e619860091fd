// Lists of words with commas between them.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace aglow {

inline std::vector<std::string_view> splitAtCommas(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

}  // namespace aglow
