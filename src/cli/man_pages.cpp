#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/reference.h"

namespace aglow::cli {

namespace {

// Text of roff: what it would take for its own is written so that it does not.
std::string escaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool lineStart = i == 0 || text[i - 1] == '\n';
    if (lineStart && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\')
      out += "\\e";
    else if (text[i] == '-')
      out += "\\-";
    else
      out += text[i];
  }
  return out;
}

std::string header(const Program& program, std::string_view name, std::string_view doc) {
  std::string title(name);
  std::transform(title.begin(), title.end(), title.begin(), [](char c) { return static_cast<char>(::toupper(c)); });
  return fmt::format(".TH \"{}\" 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", title, program.name,
                     AGLOW_VERSION, escaped(name), escaped(doc));
}

std::string valueName(const Option& option) {
  if (!option.takesValue()) return "";
  return option.type.empty() ? " VALUE" : " " + std::string(option.type);
}

std::string optionText(const Option& option) {
  std::string names;
  for (const std::string_view spelling : option.spellings())
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", escaped(spelling));
  std::string text = fmt::format(".TP\n{}{}\n{}", names, escaped(valueName(option)), escaped(option.doc));
  if (!option.environment.empty()) text += fmt::format(" (default: the variable {})", option.environment);
  return text + "\n";
}

// What stands below the help: paragraphs, and examples as they are.
std::string footerText(std::string_view footer) {
  return footer.empty() ? "" : fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", escaped(footer));
}

}  // namespace

std::string manPage(const Program& program, const Command& command) {
  std::string text = header(program, fmt::format("{}-{}", program.name, command.name), command.doc);
  text += fmt::format(".SH SYNOPSIS\n\\fB{} {}\\fR [OPTIONS]", program.name, escaped(command.name));
  for (const Option& option : command.options)
    if (!option.isOption())
      text += option.required ? fmt::format(" {}", option.names) : fmt::format(" [{}]", option.names);
  text += "\n";
  std::vector<std::string_view> groups;
  for (const Option& option : command.options)
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) groups.push_back(option.group);
  std::stable_partition(groups.begin(), groups.end(), [](std::string_view group) { return group.empty(); });
  for (const std::string_view group : groups) {
    text += fmt::format(".SH {}\n", group.empty() ? "OPTIONS" : escaped(group));
    for (const Option& option : command.options)
      if (option.group == group) text += optionText(option);
  }
  return text + footerText(command.footer);
}

std::string manPage(const Program& program) {
  std::string text = header(program, program.name, program.doc.substr(program.doc.find(": ") + 2));
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR COMMAND [OPTIONS]\n.SH COMMANDS\n", program.name);
  for (const Command& command : program.commands)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}; see {}\\-{}(1)\n", escaped(command.name), escaped(command.doc),
                        program.name, escaped(command.name));
  return text + footerText(program.footer);
}

nlohmann::ordered_json referenceJson(const Program& program) {
  nlohmann::ordered_json commands = nlohmann::ordered_json::array();
  for (const Command& command : program.commands) {
    nlohmann::ordered_json options = nlohmann::ordered_json::array();
    for (const Option& option : command.options) {
      nlohmann::ordered_json row = {{"names", option.spellings()}, {"doc", option.doc},
                                    {"group", option.group},       {"takes_value", option.takesValue()},
                                    {"repeats", option.repeats()}, {"required", option.required}};
      if (option.takesValue() && !option.type.empty()) row["value"] = option.type;
      if (!option.environment.empty()) row["variable"] = option.environment;
      options.push_back(std::move(row));
    }
    commands.push_back({{"name", command.name},
                        {"doc", command.doc},
                        {"group", command.group},
                        {"notes", command.footer},
                        {"options", std::move(options)}});
  }
  return {
      {"name", program.name}, {"doc", program.doc}, {"version", program.version}, {"commands", std::move(commands)}};
}

}  // namespace aglow::cli
