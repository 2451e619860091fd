#include "backends/csource/plain_text.h"

#include <cctype>
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

// What stands between the brackets at a place, which hold none themselves.
std::string_view argumentsAt(std::string_view text, size_t at) {
  return text.substr(at + 1, text.find(')', at) - at - 1);
}

// What a word with its arguments becomes; empty for words that are C.
class Words {
public:
  explicit Words(const std::array<bool, 2>& takesItem) : takesItem_(takesItem) {}

  std::string operator()(std::string_view word, std::string_view arguments, bool& takesArguments) const {
    takesArguments = false;
    if (word == "GLOBAL" || word == "LOCAL" || word == "LOCAL_ARRAY" || word == "TABLE") return " ";
    if (word == "TABLE_ARRAY") return "static";
    if (word == "ITEMS")
      return std::string(takesItem_[0] ? "size_t item_0, " : " ") + (takesItem_[1] ? "size_t item_1, " : "");
    takesArguments = true;
    if (word == "KERNEL") return "static void";
    if (word == "ITEM" || word == "GROUP") return "item_" + std::string(arguments);
    if (word == "OPERAND") return "void* b" + std::string(arguments);
    if (word == "AT") return "b" + std::string(arguments.substr(0, arguments.find(',')));
    return {};
  }

private:
  std::array<bool, 2> takesItem_;
};

std::string replaced(std::string_view text, const Words& words) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view word = wordAt(text, at);
    if (word.empty()) {
      out += text[at++];
      continue;
    }
    const size_t after = at + word.size();
    const bool called = after < text.size() && text[after] == '(';
    const std::string_view arguments = called ? argumentsAt(text, after) : std::string_view();
    bool takesArguments = false;
    const std::string plain = words(word, arguments, takesArguments);
    if (plain.empty() || (takesArguments && !called)) {
      out += word;
      at = after;
      continue;
    }
    out += plain == " " ? "" : plain;
    at = takesArguments ? after + arguments.size() + 2 : after;
    if (plain.back() == ' ')
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
  return {indented(replaced(text, Words(items))), items};
}

}  // namespace aglow::csource
