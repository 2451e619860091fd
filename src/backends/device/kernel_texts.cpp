#include "backends/device/kernel_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>

#include "codegen/clike/launch.h"

namespace aglow::device {

size_t KernelTexts::add(const std::string& text) {
  const auto [it, isNew] = numbers_.try_emplace(text, texts_.size());
  if (isNew) texts_.push_back(text);
  return it->second;
}

std::string KernelTexts::nameOf(size_t number) { return fmt::format("kernel_{}", number); }

std::string KernelTexts::text(size_t number) const {
  return replaced(texts_[number], codegen::Launch::kName, nameOf(number));
}

std::string KernelTexts::source(std::string_view prelude) const {
  std::string source(prelude);
  for (size_t i = 0; i < texts_.size(); ++i) source += "\n" + text(i);
  return source;
}

std::string replaced(std::string text, std::string_view word, std::string_view by) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
    text.replace(at, word.size(), by);
  return text;
}

std::string excerpt(const std::string& text, const std::string& log) {
  constexpr int kBefore = 12, kAfter = 6;
  static const std::regex kLine(":([0-9]+):[0-9]|line ([0-9]+)");
  int wanted = 0;
  if (std::smatch found; std::regex_search(log, found, kLine)) {
    const std::string digits = found[1].matched ? found[1] : found[2];
    std::from_chars(digits.data(), digits.data() + digits.size(), wanted);
  }
  std::string out;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (++number; wanted == 0 || (number >= wanted - kBefore && number <= wanted + kAfter))
      out += fmt::format("{} {:>4} | {}\n", number == wanted ? '>' : ' ', number, text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace aglow::device
