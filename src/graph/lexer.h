// The words of both text forms, one at a time, with their places. Hostile text gives an error, never a crash: a word
// that cannot be read is a Bad token, which no parser accepts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/error.h"

namespace aglow {

struct Token {
  enum class Kind : uint8_t {
    End,
    Punct,   // one character, such as '{'
    Word,    // [A-Za-z_][A-Za-z0-9_.]*
    Local,   // %name, %"any bytes", or %name:2 for a further result
    Global,  // @name, @"any bytes"
    Number,  // starts with a digit or a minus
    String,  // "any bytes", with \n, \t, \", \\ and \xNN
    Bad,     // `value` says what is wrong
  };

  Kind kind = Kind::End;
  std::string_view text;  // as it is written
  std::string value;      // Word, String: the bytes meant; Local, Global: the name
  int64_t index = 0;      // Local: the number of the result
  int line = 1;
  int column = 1;  // in bytes, from 1
};

// White space and comments (from # to the end of the line) separate tokens. The text outlives the lexer.
class Lexer {
public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const Token& peek() const { return token_; }
  Token next();

  // Whether the next token is this punctuation or word; accept takes it if so.
  bool at(std::string_view text) const;
  bool accept(std::string_view text);
  Status expect(std::string_view text);

  // The next token, if it is of the kind; `what` completes "expected ...".
  Result<Token> take(Token::Kind kind, std::string_view what);
  Result<int64_t> integer(std::string_view what);
  // Decimal, inf, -inf, nan; or the bits of a double in hexadecimal.
  Result<double> real(std::string_view what);

  // "expected X, found Y" at the next token.
  Error unexpected(std::string_view expected, std::string hint = {}) const;

private:
  void advance();
  void skipBlanks();
  void lexName(Token::Kind kind);
  void lexQuoted();
  void lexNumber();
  void step(size_t bytes);
  void bad(std::string message);

  std::string_view text_;
  size_t position_ = 0;
  int line_ = 1;
  int column_ = 1;
  Token token_;
};

// A BadText error at a token.
Error textError(const Token& token, std::string message, std::string hint = {});

// Numbers as Token::text has them. Nothing when the text is not such a number or does not fit.
std::optional<int64_t> parseInteger(std::string_view text);
std::optional<uint64_t> parseUnsigned(std::string_view text);  // decimal, or hexadecimal with 0x
std::optional<double> parseReal(std::string_view text);
inline bool isHexadecimal(std::string_view text) { return text.starts_with("0x"); }

// A name after its sigil (or without one), in quotes where it is not [A-Za-z0-9_.$/-]+.
std::string printName(std::string_view sigil, std::string_view name);
std::string printString(std::string_view bytes);
// The shortest decimal that reads back as the same double; the bits where there is none (NaNs but the usual one).
std::string printReal(double value);

}  // namespace aglow
