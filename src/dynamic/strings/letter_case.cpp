#include "dynamic/strings/letter_case.h"

#include <clocale>
#include <cwctype>

#include "support/utf8.h"

namespace aglow::strings {

namespace {

// The C library's table of letters, whatever locale the process has.
locale_t unicode() {
  static const locale_t table = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return table;
}

char32_t decoded(std::string_view sequence) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(sequence[i])); };
  if (sequence.size() == 1) return byte(0);
  char32_t point = byte(0) & (0xFFU >> (sequence.size() + 1));
  for (size_t i = 1; i < sequence.size(); ++i) point = point << 6 | (byte(i) & 0x3F);
  return point;
}

char32_t turned(char32_t point, LetterCase to, bool turkic) {
  constexpr char32_t kDotless = 0x131, kDotted = 0x130;
  if (turkic && to == LetterCase::Upper && point == U'i') return kDotted;
  if (turkic && to == LetterCase::Lower && point == U'I') return kDotless;
  const auto wide = static_cast<wint_t>(point);
  if (unicode() == locale_t{}) return point;
  return static_cast<char32_t>(to == LetterCase::Lower ? towlower_l(wide, unicode()) : towupper_l(wide, unicode()));
}

char inAscii(char c, LetterCase to) {
  if (to == LetterCase::Lower) return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

}  // namespace

std::string inCase(std::string_view text, LetterCase to, std::string_view locale) {
  const bool turkic = locale.starts_with("tr") || locale.starts_with("az");
  const bool plain = locale == "C" || locale == "POSIX";
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8Length(text, at);
    if (length == 0 || (plain && length > 1)) {
      out += text[at++];
    } else if (length == 1 && !turkic) {
      out += inAscii(text[at++], to);
    } else {
      appendUtf8(out, turned(decoded(text.substr(at, length)), to, turkic));
      at += length;
    }
  }
  return out;
}

}  // namespace aglow::strings
