#include "backends/cpu/bundle/c_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "support/hash.h"
#include "support/quote.h"
#include "support/utf8.h"

namespace aglow::codegen {

namespace {

constexpr size_t kLongest = 64;

// Words of C and C++, and functions of the C library that a program with a bundle is likely to link.
constexpr std::string_view kReserved[] = {
    "abs",      "alignas",  "alignof", "and",      "asm",       "auto",     "bool",     "break",     "case",
    "catch",    "ceil",     "char",    "class",    "concept",   "const",    "continue", "cos",       "decltype",
    "default",  "delete",   "div",     "do",       "double",    "else",     "enum",     "erf",       "exit",
    "exp",      "explicit", "export",  "extern",   "false",     "float",    "floor",    "fma",       "fmod",
    "for",      "free",     "friend",  "goto",     "if",        "index",    "inline",   "int",       "log",
    "long",     "main",     "malloc",  "memcpy",   "memmove",   "memset",   "mutable",  "namespace", "new",
    "noexcept", "not",      "nullptr", "operator", "or",        "pow",      "printf",   "private",   "protected",
    "public",   "puts",     "read",    "register", "remainder", "requires", "restrict", "return",    "round",
    "short",    "signed",   "sin",     "sizeof",   "sqrt",      "static",   "struct",   "switch",    "tan",
    "tanh",     "template", "this",    "throw",    "time",      "true",     "trunc",    "try",       "typedef",
    "typeid",   "typename", "union",   "unsigned", "using",     "virtual",  "void",     "volatile",  "while",
    "write",    "xor",
};

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string cIdentifier(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, kLongest)) text += isLetter(c) || isDigit(c) ? c : '_';
  // A leading underscore is the C library's.
  if (text.empty() || !isLetter(text.front())) text = "m" + std::string(text.starts_with('_') ? "" : "_") + text;
  if (name.size() > kLongest || text.size() > kLongest)
    text = fmt::format("{}_{:08x}", text.substr(0, kLongest - 9),
                       static_cast<uint32_t>(hashBytes(name.data(), name.size())));
  if (std::binary_search(std::begin(kReserved), std::end(kReserved), text)) text += '_';
  return text;
}

std::string upperCase(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

std::string uniqueName(const std::string& identifier, std::set<std::string>& taken,
                       std::span<const std::string_view> endings) {
  std::string name = identifier;
  const auto isTaken = [&](std::string_view ending) { return taken.contains(name + std::string(ending)); };
  for (int number = 2; std::any_of(endings.begin(), endings.end(), isTaken); ++number)
    name = fmt::format("{}_{}", identifier, number);
  for (const std::string_view ending : endings) taken.insert(name + std::string(ending));
  return name;
}

std::string cString(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    // Three octal digits end by themselves, whatever follows; two question marks might start a trigraph.
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?';
    text += plain ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return '"' + text + '"';
}

std::string commentText(std::string_view name) {
  const std::string printable = shown(name);
  std::string text;
  for (size_t at = 0; at < printable.size();) {
    const size_t length = utf8Length(printable, at);
    const char c = printable[at];
    if (length == 0)
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else if ((c == '/' && text.ends_with('*')) || (c == '*' && text.ends_with('/')) || c == '?')
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      text += printable.substr(at, length);
    at += std::max<size_t>(length, 1);
  }
  return text;
}

}  // namespace aglow::codegen
