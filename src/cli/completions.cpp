#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/reference.h"

namespace aglow::cli {

namespace {

std::vector<std::string> optionWords(const Command& command) {
  std::vector<std::string> words = {"--help"};
  for (const Option& option : command.options)
    if (option.isOption())
      for (const std::string_view spelling : option.spellings()) words.emplace_back(spelling);
  return words;
}

// What a value can be, where that is a list.
std::string_view choices(const Option& option) {
  const auto* names = std::get_if<OneOf>(&option.check);
  return names == nullptr ? std::string_view() : names->words;
}

std::string withBlanks(std::string_view commas) {
  std::string text(commas);
  std::replace(text.begin(), text.end(), ',', ' ');
  return text;
}

std::vector<std::string_view> commandNames(const Program& program) {
  std::vector<std::string_view> names;
  for (const Command& command : program.commands) names.push_back(command.name);
  return names;
}

// Text between single quotes of a shell; zsh and fish show it beside the word.
std::string quoted(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text.substr(0, text.find_first_of(".;(\n"))) {
    if (c == '\'')
      out += "'\\''";
    else
      out += (special.find(c) != special.npos ? "\\" : "") + std::string(1, c);
  }
  return out;
}

}  // namespace

std::string bashCompletion(const Program& program) {
  std::string cases, values;
  for (const Command& command : program.commands) {
    cases += fmt::format("    {}) words=\"{}\" ;;\n", command.name, fmt::join(optionWords(command), " "));
    for (const Option& option : command.options)
      if (!choices(option).empty())
        for (const std::string_view spelling : option.spellings())
          values += fmt::format("    {}:{}) words=\"{}\" ;;\n", command.name, spelling, withBlanks(choices(option)));
  }
  return fmt::format(R"(# bash completion for {0}: source it, or put it into /usr/share/bash-completion/completions/{0}
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} words=""
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=($(compgen -W "{1} --help --version" -- "$current"))
    return
  fi
  case "$command:$previous" in
{3}  esac
  if [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$current")); return; fi
  if [[ $current != -* ]]; then return; fi
  case "$command" in
{2}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _{0} {0}
)",
                     program.name, fmt::join(commandNames(program), " "), cases, values);
}

std::string zshCompletion(const Program& program) {
  std::string commands, cases;
  for (const Command& command : program.commands) {
    commands += fmt::format("    '{}:{}'\n", command.name, quoted(command.doc, ":"));
    std::string rows;
    for (const Option& option : command.options) {
      if (!option.isOption()) {
        rows += fmt::format(" \\\n        '*:{}:_files'", option.names);
        continue;
      }
      const std::string value = !option.takesValue()      ? ""
                                : choices(option).empty() ? ":value:_files"
                                                          : fmt::format(":value:({})", withBlanks(choices(option)));
      for (const std::string_view spelling : option.spellings())
        rows += fmt::format(" \\\n        '{}{}[{}]{}'", option.repeats() ? "*" : "", spelling,
                            quoted(option.doc, "[]:"), value);
    }
    cases += fmt::format("    {})\n      _arguments '--help[help]'{} ;;\n", command.name, rows);
  }
  return fmt::format(R"(#compdef {0}
# zsh completion for {0}: put it into a folder of $fpath as _{0}
_{0}() {{
  local -a commands
  commands=(
{1}  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  local command=$words[2]
  shift words; (( CURRENT-- ))
  case $command in
{2}  esac
}}
_{0} "$@"
)",
                     program.name, commands, cases);
}

std::string fishCompletion(const Program& program) {
  std::string out =
      fmt::format("# fish completion for {0}: put it into ~/.config/fish/completions/{0}.fish\n", program.name);
  const std::string names = fmt::format("{}", fmt::join(commandNames(program), " "));
  for (const Command& command : program.commands) {
    out += fmt::format("complete -c {} -f -n 'not __fish_seen_subcommand_from {}' -a {} -d '{}'\n", program.name, names,
                       command.name, quoted(command.doc, ""));
    for (const Option& option : command.options) {
      if (!option.isOption()) continue;
      out += fmt::format("complete -c {} -n '__fish_seen_subcommand_from {}'", program.name, command.name);
      for (std::string_view spelling : option.spellings()) {
        const bool isLong = spelling.starts_with("--");
        spelling.remove_prefix(isLong ? 2 : 1);
        out += fmt::format(" {} {}", isLong ? "-l" : spelling.size() == 1 ? "-s" : "-o", spelling);
      }
      if (!choices(option).empty())
        out += fmt::format(" -x -a '{}'", withBlanks(choices(option)));
      else if (option.takesValue())
        out += " -r";
      out += fmt::format(" -d '{}'\n", quoted(option.doc, ""));
    }
  }
  return out;
}

}  // namespace aglow::cli
