#include "graph/interface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/quote.h"
#include "support/suggest.h"

namespace aglow {

Result<size_t> chooseFunction(std::span<const std::string> names, std::string_view wanted) {
  constexpr std::string_view kMain = "main";
  if (wanted.empty() && names.size() == 1) return size_t{0};
  const std::string_view name = wanted.empty() ? kMain : wanted;
  if (const auto it = std::find(names.begin(), names.end(), name); it != names.end())
    return static_cast<size_t>(it - names.begin());
  std::string list;
  for (const std::string& one : names) list += (list.empty() ? "" : ", ") + quoted(one);
  const std::string nearest = didYouMean(wanted, std::vector<std::string_view>(names.begin(), names.end()));
  return Error{.code = Code::Usage,
               .message = wanted.empty() ? fmt::format("there are {} functions, and none is named main", names.size())
                                         : fmt::format("there is no function {}", quoted(wanted)),
               .where = {},
               .hint = nearest.empty() ? "choose one of " + list : nearest};
}

}  // namespace aglow
