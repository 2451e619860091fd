// The words that a bundle notes of how it was compiled.
#include <algorithm>
#include <cctype>

#include "cli/cli.h"
#include "cli/emit.h"

namespace aglow::cli {

namespace {

// What says where files go and what is shown on the way changes no byte of code.
constexpr std::string_view kAside[] = {"output",  "sizes",       "json",        "max-size", "timing", "dump",
                                       "verbose", "print-after", "verify-each", "name",     "prefix", "weights"};

std::vector<std::string> valuesOf(const Option& option) {
  return std::visit(
      [](auto* place) -> std::vector<std::string> {
        using T = std::remove_pointer_t<decltype(place)>;
        if constexpr (std::is_same_v<T, bool>)
          return *place ? std::vector<std::string>{""} : std::vector<std::string>{};
        else if constexpr (std::is_same_v<T, std::string>)
          return {*place};
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          return *place;
        else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          std::vector<std::string> texts;
          for (const int64_t number : *place) texts.push_back(std::to_string(number));
          return texts;
        } else if constexpr (std::is_same_v<T, std::optional<double>>)
          return *place ? std::vector{std::to_string(**place)} : std::vector<std::string>{};
        else
          return {std::to_string(*place)};
      },
      option.place);
}

// As a shell takes it.
std::string quotedWord(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_=./,:+@%-").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string recordedWords(EmitOptions given) {
  const Command asked = compileCommand(std::make_shared<EmitOptions>(std::move(given)));
  const Command plain = compileCommand(std::make_shared<EmitOptions>());
  std::string text;
  for (size_t i = 0; i < asked.options.size(); ++i) {
    const Option& option = asked.options[i];
    if (!option.isOption() || std::find(std::begin(kAside), std::end(kAside), option.key()) != std::end(kAside))
      continue;
    const std::vector<std::string> values = valuesOf(option);
    if (values == valuesOf(plain.options[i])) continue;
    for (const std::string& value : values) {
      text += text.empty() ? "" : " ";
      text += option.spellings().back();
      if (option.takesValue()) text += " " + quotedWord(value);
    }
  }
  return text;
}

std::vector<std::string> wordsOf(const std::string& recorded) {
  std::vector<std::string> words;
  bool inside = false, quoted = false;
  for (size_t at = 0; at < recorded.size(); ++at) {
    const char c = recorded[at];
    if (c == ' ' && !quoted) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == '\'')
      quoted = !quoted;
    else
      words.back() += c == '\\' && !quoted && at + 1 < recorded.size() ? recorded[++at] : c;
  }
  return words;
}

}  // namespace aglow::cli
