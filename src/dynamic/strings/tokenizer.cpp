// Tokenizer of com.microsoft: strings cut into characters, at separators, or into what a pattern finds.
#include <fmt/format.h>

#include <algorithm>

#include "dynamic/strings/regex.h"
#include "dynamic/strings/string_ops.h"
#include "graph/builder.h"
#include "import/onnx/op_contrib.h"
#include "support/quote.h"
#include "support/utf8.h"

namespace aglow::strings {

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 26;  // a model must not exhaust the machine
constexpr std::string_view kStart = "\x02", kEnd = "\x03";

using Tokens = std::vector<std::string_view>;

int64_t characters(std::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); at += utf8Length(text, at)) ++count;
  return count;
}

// Where the character after the one at a position begins.
size_t after(std::string_view text, size_t at) { return at < text.size() ? at + utf8Length(text, at) : at + 1; }

Tokens lettersOf(std::string_view text) {
  Tokens tokens;
  for (size_t at = 0; at < text.size(); at = after(text, at)) tokens.push_back(text.substr(at, after(text, at) - at));
  return tokens;
}

// What stands between separators. Where one is empty, the character after it goes too.
Tokens between(const Tokens& texts, const Pattern& separator, int64_t shortest) {
  Tokens tokens;
  const auto add = [&](std::string_view token) {
    if (characters(token) >= shortest) tokens.push_back(token);
  };
  for (const std::string_view text : texts) {
    size_t at = 0;
    while (const auto match = separator.find(text, at)) {
      add(text.substr(at, match->begin - at));
      at = match->end > match->begin ? match->end : after(text, match->begin);
    }
    if (at < text.size()) add(text.substr(at));
  }
  return tokens;
}

// What a pattern finds. After a match that is too short, the search goes on at its second character.
Tokens matchesOf(std::string_view text, const Pattern& pattern, int64_t shortest) {
  Tokens tokens;
  size_t at = 0;
  while (const auto match = pattern.find(text, at)) {
    const std::string_view token = text.substr(match->begin, match->end - match->begin);
    const bool enough = characters(token) >= shortest;
    if (enough) tokens.push_back(token);
    at = enough ? match->end : after(text, match->begin);
  }
  return tokens;
}

// What turns one string into tokens, as the node's attributes say.
std::function<Tokens(std::string_view)> cutterOf(const Call& call) {
  const int64_t shortest = call.integer("mincharnum", 0);
  if (shortest < 1) fail(Code::BadNode, fmt::format("expected a positive attribute 'mincharnum', got {}", shortest));
  const std::vector<std::string> separators = call.words("separators");
  const std::string expression = call.word("tokenexp");
  if (separators.empty() == expression.empty())
    fail(Code::BadNode, "expected one of the attributes 'separators' and 'tokenexp'");
  if (expression == "." || (separators.size() == 1 && separators.front().empty())) {
    if (shortest > 1)
      fail(Code::BadNode, fmt::format("expected 'mincharnum' 1 for tokens that are characters, got {}", shortest));
    return lettersOf;
  }
  const auto compiled = [](const std::string& pattern) {
    return orFail(Pattern::create(pattern, Pattern::Prefer::Longest));
  };
  if (!expression.empty())
    return [pattern = compiled(expression), shortest](std::string_view text) {
      return matchesOf(text, pattern, shortest);
    };
  std::vector<Pattern> patterns;
  for (const std::string& separator : separators) patterns.push_back(compiled(separator));
  return [patterns = std::move(patterns), shortest](std::string_view text) {
    Tokens tokens = {text};
    for (const Pattern& pattern : patterns) tokens = between(tokens, pattern, shortest);
    return tokens;
  };
}

Values tokenizer(const Call& call) {
  const StringTensor& x = call.strings(0);
  if (x.shape().rank() < 1 || x.shape().rank() > 2)
    fail(Code::BadNode, fmt::format("expected strings of shape [C] or [N,C], got {}", x.text()));
  const auto cut = cutterOf(call);
  const bool mark = call.integer("mark", 0) != 0;
  const std::string pad = call.word("pad_value");
  std::vector<Tokens> rows;
  size_t longest = 0;
  for (const std::string& text : x.strings()) {
    for (size_t at = 0; at < text.size(); at += utf8Length(text, at))
      if (utf8Length(text, at) == 0) fail(Code::RuntimeValue, fmt::format("the string {} is not UTF-8", quoted(text)));
    rows.push_back(cut(text));
    longest = std::max(longest, rows.back().size());
  }
  // Without strings there is no axis of tokens, and without tokens there are no marks.
  if (rows.empty())
    return {ModelValue::of(StringTensor(x.shape().rank() == 1 ? Shape{0} : Shape{x.shape()[0], 0}, {}))};
  const size_t width = longest + (mark && longest > 0 ? 2 : 0);
  std::vector<int64_t> dims = x.shape().dims();
  dims.push_back(static_cast<int64_t>(width));
  Shape shape = orFail(Shape::create(std::move(dims)));
  if (shape.elements() > kMaxElements)
    fail(Code::TooLarge, fmt::format("the result string{} would have over {} elements", shape.text(), kMaxElements));
  std::vector<std::string> all;
  all.reserve(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < rows.size() && width > 0; ++i) {
    if (mark) all.emplace_back(kStart);
    all.insert(all.end(), rows[i].begin(), rows[i].end());
    if (mark) all.emplace_back(kEnd);
    all.resize((i + 1) * width, pad);
  }
  return {ModelValue::of(StringTensor(std::move(shape), std::move(all)))};
}

}  // namespace

std::span<const HandlerRow> tokenizerHandlers() {
  static constexpr HandlerRow rows[] = {{"Tokenizer", tokenizer, onnx::kMicrosoft}};
  return rows;
}

}  // namespace aglow::strings
