#include "backends/device/kernel_texts.h"

#include <fmt/format.h>

#include "codegen/clike/launch.h"

namespace aglow::device {

size_t KernelTexts::add(const std::string& text) {
  const auto [it, isNew] = numbers_.try_emplace(text, texts_.size());
  if (isNew) texts_.push_back(text);
  return it->second;
}

std::string KernelTexts::nameOf(size_t number) { return fmt::format("kernel_{}", number); }

std::string KernelTexts::text(size_t number) const {
  const std::string_view placeholder = codegen::Launch::kName;
  std::string text = texts_[number];
  for (size_t at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder, at))
    text.replace(at, placeholder.size(), nameOf(number));
  return text;
}

std::string KernelTexts::source(std::string_view prelude) const {
  std::string source(prelude);
  for (size_t i = 0; i < texts_.size(); ++i) source += "\n" + text(i);
  return source;
}

}  // namespace aglow::device
