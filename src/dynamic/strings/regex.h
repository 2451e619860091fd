// Regular expressions in time linear to the text, whatever the pattern.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "support/error.h"

namespace aglow::strings {

class Pattern {
public:
  enum class Prefer : uint8_t { First, Longest };  // alternative, of those that match at one place

  // BadNode when the pattern is none; UnsupportedFeature in a build without RE2.
  static Result<Pattern> create(const std::string& pattern, Prefer prefer = Prefer::First);

  bool matchesAll(std::string_view text) const;
  // The first match that begins at a position or after it.
  struct Span {
    size_t begin = 0, end = 0;
  };
  std::optional<Span> find(std::string_view text, size_t from) const;

private:
  struct Expression;
  explicit Pattern(std::shared_ptr<const Expression> expression) : expression_(std::move(expression)) {}

  std::shared_ptr<const Expression> expression_;
};

}  // namespace aglow::strings
