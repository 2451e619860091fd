#include "dynamic/strings/regex.h"

#include <fmt/format.h>

#ifdef AGLOW_RE2
#include <re2/re2.h>
#endif

#include "support/quote.h"

namespace aglow::strings {

#ifdef AGLOW_RE2

Result<std::vector<int64_t>> fullMatches(const std::string& pattern, const std::vector<std::string>& texts) {
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 expression(pattern, options);
  if (!expression.ok())
    return Error{.code = Code::BadNode,
                 .message = fmt::format("the pattern {} is no regular expression: {}", quoted(pattern),
                                        shown(expression.error()))};
  std::vector<int64_t> matches;
  for (const std::string& text : texts) matches.push_back(RE2::FullMatch(text, expression) ? 1 : 0);
  return matches;
}

#else

Result<std::vector<int64_t>> fullMatches(const std::string&, const std::vector<std::string>&) {
  return Error{.code = Code::UnsupportedFeature,
               .message = "this build has no regular expressions",
               .where = {},
               .hint = "install RE2 (in Debian libre2-dev) and build again"};
}

#endif

}  // namespace aglow::strings
