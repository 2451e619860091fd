#include "dynamic/strings/regex.h"

#include <fmt/format.h>

#ifdef AGLOW_RE2
#include <re2/re2.h>
#endif

#include "support/quote.h"

namespace aglow::strings {

#ifdef AGLOW_RE2

struct Pattern::Expression {
  Expression(const std::string& pattern, const RE2::Options& options) : re(pattern, options) {}
  RE2 re;
};

Result<Pattern> Pattern::create(const std::string& pattern, Prefer prefer) {
  RE2::Options options;
  options.set_log_errors(false);
  options.set_longest_match(prefer == Prefer::Longest);
  auto expression = std::make_shared<const Expression>(pattern, options);
  if (!expression->re.ok())
    return Error{.code = Code::BadNode,
                 .message = fmt::format("the pattern {} is not a regular expression: {}", quoted(pattern),
                                        shown(expression->re.error()))};
  return Pattern(std::move(expression));
}

bool Pattern::matchesAll(std::string_view text) const {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), expression_->re);
}

std::optional<Pattern::Span> Pattern::find(std::string_view text, size_t from) const {
  re2::StringPiece found;
  if (from > text.size() ||
      !expression_->re.Match(re2::StringPiece(text.data(), text.size()), from, text.size(), RE2::UNANCHORED, &found, 1))
    return std::nullopt;
  const auto begin = static_cast<size_t>(found.data() - text.data());
  return Span{begin, begin + found.size()};
}

#else

struct Pattern::Expression {};

Result<Pattern> Pattern::create(const std::string&, Prefer) {
  return Error{.code = Code::UnsupportedFeature,
               .message = "this build has no regular expressions",
               .where = {},
               .hint = "install RE2 (in Debian libre2-dev) and build again"};
}

bool Pattern::matchesAll(std::string_view) const { return false; }
std::optional<Pattern::Span> Pattern::find(std::string_view, size_t) const { return std::nullopt; }

#endif

}  // namespace aglow::strings
