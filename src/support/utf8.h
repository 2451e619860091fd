// Names in model files may be any bytes; what is shown to people must be valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace aglow {

// The length of the well-formed UTF-8 sequence that starts at a position, or 0 when there is none.
inline size_t utf8Length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const size_t length = byte(0) < 0x80 ? 1 : byte(0) < 0xC2 ? 0 : byte(0) < 0xE0 ? 2 : byte(0) < 0xF0 ? 3 : 4;
  if (length == 0 || byte(0) > 0xF4 || length > text.size() - at) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates, and what lies beyond the last code point.
  if (byte(0) == 0xE0 && byte(1) < 0xA0) return 0;
  if (byte(0) == 0xED && byte(1) > 0x9F) return 0;
  if (byte(0) == 0xF0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

// Question marks in place of bytes that are no UTF-8, and spaces in place of those that control what prints them.
inline std::string printableUtf8(std::string text) {
  for (size_t at = 0, length = 0; at < text.size(); at += length == 0 ? 1 : length) {
    length = utf8Length(text, at);
    if (length == 0) text[at] = '?';
    if (length == 1 && (text[at] < ' ' || text[at] == 0x7F)) text[at] = ' ';
  }
  return text;
}

// A code point, which is at most 0x10FFFF, as one to four bytes.
inline void appendUtf8(std::string& text, char32_t point) {
  const int tails = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  const char32_t mark = tails == 0 ? 0 : 0xFF00U >> (tails + 1) & 0xFF;
  text += static_cast<char>(mark | point >> (6 * tails));
  for (int i = tails; i-- > 0;) text += static_cast<char>(0x80 | (point >> (6 * i) & 0x3F));
}

}  // namespace aglow
