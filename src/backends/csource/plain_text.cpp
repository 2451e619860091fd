#include "backends/csource/plain_text.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

namespace aglow::csource {

namespace {

bool inWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The word that begins at a place, and nothing in the middle of one.
std::string_view wordAt(std::string_view text, size_t at) {
  if (!inWord(text[at]) || (at > 0 && inWord(text[at - 1]))) return {};
  size_t end = at;
  while (end < text.size() && inWord(text[end])) ++end;
  return text.substr(at, end - at);
}

// What stands between the brackets at a place.
std::string_view argumentsAt(std::string_view text, size_t at) {
  int depth = 0;
  size_t end = at;
  do {
    depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
    ++end;
  } while (depth > 0 && end < text.size());
  return text.substr(at + 1, end - at - 2);
}

// Argument number n of some, which commas separate.
std::string_view argument(std::string_view arguments, int n) {
  int depth = 0;
  size_t begin = 0;
  for (size_t at = 0; at <= arguments.size(); ++at) {
    const char c = at == arguments.size() ? ',' : arguments[at];
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c != ',' || depth != 0) continue;
    if (n-- == 0) {
      begin += arguments[begin] == ' ' ? 1 : 0;
      return arguments.substr(begin, at - begin);
    }
    begin = at + 1;
  }
  return {};
}

// What words become, with their arguments in the places of their numbers; an empty text is left out with the space
// after it. The items of a kernel are those of its function.
struct PlainWord {
  std::string_view word, text;
};
constexpr PlainWord kPlain[] = {
    {"GLOBAL", ""},
    {"LOCAL", ""},
    {"LOCAL_ARRAY", ""},
    {"TABLE", ""},
    {"TABLE_ARRAY", "static"},
    {"KERNEL", "static void"},
    {"ITEM", "item_$0"},
    {"GROUP", "item_$0"},
    {"OPERAND", "void* b$0"},
    {"AT", "b$0"},
    {"f64", "double"},
    {"stored_f64", "double"},
    {"F64", "$0"},
    {"F64_ENTRY", "$0"},
    {"load_f64", "$0"},
    {"store_f64", "$0"},
    {"f64_of_bool", "(double)$0"},
    {"f64_of_f32", "(double)$0"},
    {"f64_of_i32", "(double)$0"},
    {"f64_of_u32", "(double)$0"},
    {"f64_of_i64", "(double)$0"},
    {"f64_of_u64", "(double)$0"},
    {"f32_of_f64", "(float)$0"},
    {"add_f64", "$0 + $1"},
    {"sub_f64", "$0 - $1"},
    {"mul_f64", "$0 * $1"},
    {"div_f64", "$0 / $1"},
    {"eq_f64", "$0 == $1"},
    {"lt_f64", "$0 < $1"},
};

std::string replaced(std::string_view text, const std::array<bool, 2>& items);

// With brackets where several things stand side by side that signs around them would tear apart.
std::string asOne(std::string text) {
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (c == ' ' && depth == 0) return "(" + text + ")";
  }
  return text;
}

std::string filled(std::string_view pattern, std::string_view arguments, const std::array<bool, 2>& items) {
  const bool signs = pattern.find_first_of(" (") != std::string_view::npos;
  std::string out;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '$') {
      out += pattern[at];
      continue;
    }
    std::string text = replaced(argument(arguments, pattern[++at] - '0'), items);
    out += signs ? asOne(std::move(text)) : text;
  }
  return out;
}

std::string replaced(std::string_view text, const std::array<bool, 2>& items) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view word = wordAt(text, at);
    if (word.empty()) {
      out += text[at++];
      continue;
    }
    const size_t begin = at;
    at += word.size();
    if (word == "ITEMS") {
      out += std::string(items[0] ? "size_t item_0, " : "") + (items[1] ? "size_t item_1, " : "");
      while (at < text.size() && text[at] == ' ') ++at;
      continue;
    }
    const PlainWord* plain = std::find_if(std::begin(kPlain), std::end(kPlain), [&](const PlainWord& one) {
      return one.word == word &&
             (one.text.find('$') == std::string_view::npos || (at < text.size() && text[at] == '('));
    });
    if (plain == std::end(kPlain)) {
      out += word;
      continue;
    }
    const bool takesArguments = plain->word == "KERNEL" || plain->text.find('$') != std::string_view::npos;
    const std::string_view arguments = takesArguments ? argumentsAt(text, at) : std::string_view();
    if (takesArguments) at += arguments.size() + 2;
    // What is the whole value of a variable needs no brackets.
    const bool alone = begin >= 2 && text.substr(begin - 2, 2) == "= " && at < text.size() && text[at] == ';';
    const std::string made = filled(plain->text, arguments, items);
    out += alone || !plain->text.starts_with('$') ? made : asOne(made);
    if (plain->text.empty())
      while (at < text.size() && text[at] == ' ') ++at;
  }
  return out;
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  while (!line.empty() && line.back() == ' ') line.remove_suffix(1);
  return line;
}

// Two spaces for each brace that is open, and for a statement that a line before it leads to.
std::string indented(std::string_view text) {
  std::string out;
  int depth = 0, led = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(text.substr(at, end - at));
    at = end + 1;
    if (line.empty() || line == "#pragma unroll") continue;
    int closed = 0;
    while (closed < static_cast<int>(line.size()) && line[static_cast<size_t>(closed)] == '}') ++closed;
    out += std::string(static_cast<size_t>(2 * std::max(depth - closed + led, 0)), ' ') + std::string(line) + "\n";
    for (const char c : line) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    const bool leads = line.starts_with("for (") || line.starts_with("if (");
    led = leads && line.back() != ';' && line.back() != '{' && line.back() != '}' ? led + 1 : 0;
  }
  return out;
}

}  // namespace

PlainKernel plainKernel(const std::string& text) {
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  const std::array<bool, 2> items = {has("ITEM(0)") || has("GROUP(0)"), has("ITEM(1)") || has("GROUP(1)")};
  return {indented(replaced(text, items)), items};
}

}  // namespace aglow::csource
