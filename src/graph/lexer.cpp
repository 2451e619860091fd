// Tokens of the text forms: finding, naming and writing them.
#include "graph/lexer.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <limits>

#include "support/utf8.h"

namespace aglow {

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isWordPart(char c) { return isLetter(c) || isDigit(c) || c == '.'; }
bool isNamePart(char c) { return isWordPart(c) || c == '$' || c == '/' || c == '-'; }

template <class Number>
bool parseAll(std::string_view text, Number& value, auto... base) {
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value, base...);
  return fault == std::errc() && stop == end && !text.empty();
}

int hexDigit(char c) {
  if (isDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A token in a message: short, and nothing that disturbs a terminal.
std::string shown(const Token& token) {
  if (token.kind == Token::Kind::End) return "the end of the text";
  constexpr size_t kLongest = 60;
  std::string out = "'";
  for (const char c : token.text.substr(0, kLongest))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? fmt::format("\\x{:02x}", c) : std::string(1, c);
  return out + (token.text.size() > kLongest ? "...'" : "'");
}

}  // namespace

Error textError(const Token& token, std::string message, std::string hint) {
  return {.code = Code::BadText,
          .message = std::move(message),
          .where = fmt::format("{}:{}", token.line, token.column),
          .hint = std::move(hint)};
}

bool parseInteger(std::string_view text, int64_t& value) { return parseAll(text, value, 10); }

bool parseUnsigned(std::string_view text, uint64_t& value) {
  return isHexadecimal(text) ? parseAll(text.substr(2), value, 16) : parseAll(text, value, 10);
}

bool parseReal(std::string_view text, double& value) {
  if (isHexadecimal(text)) {
    uint64_t bits = 0;
    const bool good = parseUnsigned(text, bits);
    value = std::bit_cast<double>(bits);
    return good;
  }
  // from_chars knows more spellings of these than the text form has.
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (text == "inf" || text == "-inf") return value = text[0] == '-' ? -kInf : kInf, true;
  if (text == "nan") return value = std::numeric_limits<double>::quiet_NaN(), true;
  const size_t first = text.starts_with('-') ? 1 : 0;
  return text.size() > first && isDigit(text[first]) && parseAll(text, value);
}

Token Lexer::next() {
  Token taken = std::move(token_);
  advance();
  return taken;
}

bool Lexer::at(std::string_view text) const {
  return (token_.kind == Token::Kind::Punct || token_.kind == Token::Kind::Word) && token_.text == text;
}

bool Lexer::accept(std::string_view text) {
  if (!at(text)) return false;
  advance();
  return true;
}

Status Lexer::expect(std::string_view text) {
  if (!accept(text)) return unexpected(fmt::format("'{}'", text));
  return {};
}

Result<Token> Lexer::take(Token::Kind kind, std::string_view what) {
  if (token_.kind != kind) return unexpected(what);
  return next();
}

Result<int64_t> Lexer::integer(std::string_view what) {
  int64_t value = 0;
  if (token_.kind != Token::Kind::Number || !parseInteger(token_.text, value)) return unexpected(what);
  advance();
  return value;
}

Result<double> Lexer::real(std::string_view what) {
  const bool maybe = token_.kind == Token::Kind::Number || token_.kind == Token::Kind::Word;
  double value = 0;
  if (!maybe || !parseReal(token_.text, value)) return unexpected(what);
  advance();
  return value;
}

Error Lexer::unexpected(std::string_view expected, std::string hint) const {
  if (token_.kind == Token::Kind::Bad) return textError(token_, token_.value);
  return textError(token_, fmt::format("expected {}, found {}", expected, shown(token_)), std::move(hint));
}

void Lexer::step(size_t bytes) {
  for (; bytes > 0; --bytes, ++position_) {
    const bool newLine = text_[position_] == '\n';
    line_ += newLine ? 1 : 0;
    column_ = newLine ? 1 : column_ + 1;
  }
}

void Lexer::skipBlanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '#')
      step(std::min(text_.find('\n', position_), text_.size()) - position_);
    else if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
      step(1);
    else
      break;
  }
}

void Lexer::bad(std::string message) {
  token_.kind = Token::Kind::Bad;
  token_.value = std::move(message);
}

void Lexer::advance() {
  skipBlanks();
  token_ = {};
  token_.line = line_;
  token_.column = column_;
  const size_t start = position_;
  if (start == text_.size()) return;
  const char c = text_[start];
  if (c == '%' || c == '@') {
    step(1);
    lexName(c == '%' ? Token::Kind::Local : Token::Kind::Global);
  } else if (c == '"') {
    token_.kind = Token::Kind::String;
    lexQuoted();
  } else if (isDigit(c) || c == '-') {
    lexNumber();
  } else if (isLetter(c)) {
    while (position_ < text_.size() && isWordPart(text_[position_])) step(1);
    token_.kind = Token::Kind::Word;
    token_.value = text_.substr(start, position_ - start);
  } else if (std::string_view("{}()[]<>,:=*!?+|").find(c) != std::string_view::npos) {
    step(1);
    token_.kind = Token::Kind::Punct;
  } else {
    step(1);
    bad(fmt::format("no word starts with the byte 0x{:02x}", static_cast<unsigned char>(c)));
  }
  token_.text = text_.substr(start, position_ - start);
}

void Lexer::lexName(Token::Kind kind) {
  token_.kind = kind;
  const size_t start = position_;
  if (start < text_.size() && text_[start] == '"') {
    lexQuoted();
  } else {
    while (position_ < text_.size() && isNamePart(text_[position_])) step(1);
    token_.value = text_.substr(start, position_ - start);
    if (token_.value.empty())
      bad(kind == Token::Kind::Local ? "expected a name behind '%'" : "expected a name behind '@'");
  }
  // The number of a result touches its name; a type stands apart.
  if (token_.kind != Token::Kind::Local || position_ + 1 >= text_.size()) return;
  if (text_[position_] != ':' || !isDigit(text_[position_ + 1])) return;
  step(1);
  const size_t digits = position_;
  while (position_ < text_.size() && isDigit(text_[position_])) step(1);
  if (!parseInteger(text_.substr(digits, position_ - digits), token_.index)) bad("the number of a result is too large");
}

void Lexer::lexQuoted() {
  step(1);
  while (position_ < text_.size() && text_[position_] != '"' && text_[position_] != '\n') {
    if (text_[position_] != '\\') {
      token_.value += text_[position_];
      step(1);
      continue;
    }
    const std::string_view rest = text_.substr(position_);
    const char letter = rest.size() > 1 ? rest[1] : '\0';
    const int high = rest.size() > 3 ? hexDigit(rest[2]) : -1;
    const int low = rest.size() > 3 ? hexDigit(rest[3]) : -1;
    if (letter == 'x' && high >= 0 && low >= 0) {
      token_.value += static_cast<char>(high * 16 + low);
    } else if (letter == 'n' || letter == 't') {
      token_.value += letter == 'n' ? '\n' : '\t';
    } else if (letter == '"' || letter == '\\') {
      token_.value += letter;
    } else {
      return bad("unknown escape in a string; expected \\n, \\t, \\\", \\\\ or \\xNN");
    }
    step(letter == 'x' ? 4 : 2);
  }
  if (position_ == text_.size() || text_[position_] == '\n') return bad("a string has no closing quote in its line");
  step(1);
}

void Lexer::lexNumber() {
  token_.kind = Token::Kind::Number;
  const size_t start = position_;
  step(1);
  while (position_ < text_.size()) {
    const char last = text_[position_ - 1];
    const bool inExponent = (last == 'e' || last == 'E') && !isHexadecimal(text_.substr(start));
    const char c = text_[position_];
    if (!isWordPart(c) && !(inExponent && (c == '+' || c == '-'))) break;
    step(1);
  }
}

std::string printString(std::string_view bytes) {
  std::string out = "\"";
  for (size_t i = 0; i < bytes.size();) {
    const char c = bytes[i];
    const size_t length = utf8Length(bytes, i);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (c == '\n' || c == '\t')
      out += c == '\n' ? "\\n" : "\\t";
    else if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += bytes.substr(i, length);
    i += std::max<size_t>(length, 1);
  }
  return out + "\"";
}

std::string printName(std::string_view sigil, std::string_view name) {
  bool plain = !name.empty();
  for (const char c : name) plain = plain && isNamePart(c);
  return std::string(sigil) + (plain ? std::string(name) : printString(name));
}

std::string printReal(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const std::string text = fmt::format("{}", value);
  double again = 0;
  if (parseReal(text, again) && std::bit_cast<uint64_t>(again) == bits) return text;
  return fmt::format("0x{:016x}", bits);
}

}  // namespace aglow
