// A name may hold anything, also terminal control sequences or a mebibyte of text; a message must not.
#include "support/quote.h"

namespace aglow {

std::string shown(std::string_view name) {
  constexpr size_t kLongest = 120;
  constexpr size_t kKept = 50;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  const auto append = [&](std::string_view part) {
    for (const char c : part) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte == 0x7f)
        out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
      else
        out += c;
    }
  };
  if (name.size() <= kLongest) {
    append(name);
  } else {
    append(name.substr(0, kKept));
    out += "...";
    append(name.substr(name.size() - kKept));
  }
  return out;
}

std::string quoted(std::string_view name) { return "'" + shown(name) + "'"; }

}  // namespace aglow
