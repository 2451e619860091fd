// Tokens of the text forms: finding, naming and writing them.
#include "graph/lexer.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "support/quote.h"
#include "support/utf8.h"

namespace aglow {

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isWordPart(char c) { return isLetter(c) || isDigit(c) || c == '.'; }
bool isNamePart(char c) { return isWordPart(c) || c == '$' || c == '/' || c == '-'; }

template <class Number>
std::optional<Number> parseAll(std::string_view text, auto... base) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value, base...);
  if (fault != std::errc() || stop != end) return std::nullopt;
  return value;
}

int hexDigit(char c) {
  if (isDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Error textError(const Token& token, std::string message, std::string hint) {
  return {.code = Code::BadText,
          .message = std::move(message),
          .where = fmt::format("{}:{}", token.line, token.column),
          .hint = std::move(hint)};
}

std::optional<int64_t> parseInteger(std::string_view text) { return parseAll<int64_t>(text, 10); }

std::optional<uint64_t> parseUnsigned(std::string_view text) {
  return isHexadecimal(text) ? parseAll<uint64_t>(text.substr(2), 16) : parseAll<uint64_t>(text, 10);
}

std::optional<double> parseReal(std::string_view text) {
  if (isHexadecimal(text)) {
    const std::optional<uint64_t> bits = parseUnsigned(text);
    return bits ? std::optional(std::bit_cast<double>(*bits)) : std::nullopt;
  }
  // from_chars knows more spellings than the text form has.
  const size_t first = text.starts_with('-') ? 1 : 0;
  const bool number = text.size() > first && isDigit(text[first]);
  const bool special = text == "inf" || text == "-inf" || text == "nan";
  return number || special ? parseAll<double>(text) : std::nullopt;
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
  const auto value = token_.kind == Token::Kind::Number ? parseInteger(token_.text) : std::nullopt;
  if (!value) return unexpected(what);
  advance();
  return *value;
}

Result<double> Lexer::real(std::string_view what) {
  const bool maybe = token_.kind == Token::Kind::Number || token_.kind == Token::Kind::Word;
  const auto value = maybe ? parseReal(token_.text) : std::nullopt;
  if (!value) return unexpected(what);
  advance();
  return *value;
}

Error Lexer::unexpected(std::string_view expected, std::string hint) const {
  if (token_.kind == Token::Kind::Bad) return textError(token_, token_.value);
  const std::string found = token_.kind == Token::Kind::End ? "the end of the text" : quoted(token_.text);
  return textError(token_, fmt::format("expected {}, found {}", expected, found), std::move(hint));
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
      bad(kind == Token::Kind::Local ? "expected a name after '%'" : "expected a name after '@'");
  }
  // The number of a result touches its name; a type stands apart.
  if (token_.kind != Token::Kind::Local || position_ + 1 >= text_.size()) return;
  if (text_[position_] != ':' || !isDigit(text_[position_ + 1])) return;
  step(1);
  const size_t digits = position_;
  while (position_ < text_.size() && isDigit(text_[position_])) step(1);
  const auto index = parseInteger(text_.substr(digits, position_ - digits));
  if (!index) return bad("the number of a result is too large");
  token_.index = *index;
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
  const std::optional<double> again = parseReal(text);
  if (again && std::bit_cast<uint64_t>(*again) == bits) return text;
  return fmt::format("0x{:016x}", bits);
}

}  // namespace aglow
