// The kernels of programs as text, each once, under names by their numbers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace aglow::device {

class KernelTexts {
public:
  // The number of the kernel with this text.
  size_t add(const std::string& text);
  size_t count() const { return texts_.size(); }

  static std::string nameOf(size_t number);
  // One kernel under its name; all of them, after what they stand on.
  std::string text(size_t number) const;
  std::string source(std::string_view prelude) const;

private:
  std::map<std::string, size_t> numbers_;
  std::vector<std::string> texts_;
};

// The text with all of one word changed to another.
std::string replaced(std::string text, std::string_view word, std::string_view by);
// A text with numbers of lines; of a long one those around the first that the compiler's log names.
std::string excerpt(const std::string& text, const std::string& log);

}  // namespace aglow::device
