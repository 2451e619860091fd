#include "cli/options.h"

namespace aglow::cli {

std::vector<std::string_view> Option::spellings() const {
  std::vector<std::string_view> all;
  for (size_t from = 0; from <= names.size();) {
    const size_t to = std::min(names.find(',', from), names.size());
    all.push_back(names.substr(from, to - from));
    from = to + 1;
  }
  return all;
}

std::string_view Option::key() const {
  std::string_view best;
  for (const std::string_view spelling : spellings())
    if (best.empty() || (spelling.starts_with("--") && !best.starts_with("--"))) best = spelling;
  best.remove_prefix(std::min(best.find_first_not_of('-'), best.size()));
  return best;
}

std::vector<Option> inGroup(std::string_view group, std::vector<Option> options) {
  for (Option& option : options) option.group = group;
  return options;
}

}  // namespace aglow::cli
