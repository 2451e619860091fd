#include "cli/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "support/file.h"
#include "support/suggest.h"

namespace aglow::cli {

namespace {

constexpr Variable kVariables[] = {
    {"AGLOW_BACKEND", "what runs programs where --backend is not given"},
    {"AGLOW_CACHE_DIR", "folder where compiled models are kept, or off"},
    {"AGLOW_CONFIG", "the file of defaults, or off"},
    {"AGLOW_DISABLE", "passes and rules that are off where --disable is not given"},
    {"AGLOW_OPENCL_DEVICE", "the device that a bundle for devices runs on"},
    {"AGLOW_PERF", "1: names generated code for perf"},
    {"AGLOW_PYTHON", "the Python in which verify runs onnxruntime"},
    {"AGLOW_SPIN", "microseconds that a thread looks for work before it sleeps"},
    {"AGLOW_THREADS", "threads at most where --threads is not given"},
    {"AGLOW_TOKEN_FILE", "the bearer token that clients of serve have to send"},
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string configPath() {
  if (const std::string named = variable("AGLOW_CONFIG"); !named.empty()) return named == "off" ? "" : named;
  if (const std::string folder = variable("XDG_CONFIG_HOME"); !folder.empty()) return folder + "/aglow/config";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.config/aglow/config";
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t from = text.find_first_not_of(kBlank);
  if (from == text.npos) return {};
  return text.substr(from, text.find_last_not_of(kBlank) - from + 1);
}

// A comment begins with # at the begin of a line or after a blank.
std::string_view withoutComment(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i)
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) return line.substr(0, i);
  return line;
}

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

Error fault(std::string message, std::string hint = {}) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = std::move(hint)};
}

Result<std::vector<ConfigEntry>> parse(std::string_view text, const std::string& path) {
  std::vector<ConfigEntry> entries;
  std::string command;
  int number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find('\n', from), text.size());
    const std::string_view line = trimmed(withoutComment(text.substr(from, to - from)));
    from = to + 1;
    ++number;
    if (line.empty()) continue;
    if (line.front() == '[' && line.back() == ']') {
      command = trimmed(line.substr(1, line.size() - 2));
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == line.npos || equals == 0)
      return fault(fmt::format("expected `option = value`, got '{}'", line)).at(fmt::format("{}:{}", path, number));
    entries.push_back({.command = command,
                       .key = std::string(trimmed(line.substr(0, equals))),
                       .value = std::string(unquoted(trimmed(line.substr(equals + 1)))),
                       .line = number});
  }
  return entries;
}

// Each entry is for an option that some command has.
Status check(const ConfigEntry& entry, std::span<const Command> commands) {
  std::vector<std::string_view> names, keys;
  for (const Command& command : commands) {
    names.push_back(command.name);
    if (!entry.command.empty() && entry.command != command.name) continue;
    for (const Option& option : command.options)
      if (option.isOption()) keys.push_back(option.key());
  }
  if (!entry.command.empty() && std::ranges::find(names, entry.command) == names.end())
    return fault(fmt::format("there is no command '{}'", entry.command), didYouMean(entry.command, names));
  if (std::ranges::find(keys, entry.key) == keys.end())
    return fault(
        fmt::format("{} option '{}'",
                    entry.command.empty() ? "no command has an" : "`aglow " + entry.command + "` has no", entry.key),
        didYouMean(entry.key, keys));
  return {};
}

}  // namespace

std::span<const Variable> environmentVariables() { return kVariables; }

Result<Config> Config::read(std::span<const Command> commands) {
  Config config;
  config.path_ = configPath();
  std::error_code ignored;
  if (config.path_.empty()) return config;
  const bool named = !variable("AGLOW_CONFIG").empty();
  if (!named && !std::filesystem::exists(config.path_, ignored)) return config;
  AGLOW_TRY(const SharedBytes file, readFile(config.path_));
  config.found_ = true;
  AGLOW_TRY(config.entries_,
            parse({reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()}, config.path_));
  for (const ConfigEntry& entry : config.entries_)
    if (Status checked = check(entry, commands); !checked.ok())
      return std::move(checked).error().at(config.place(entry));
  return config;
}

const ConfigEntry* Config::find(std::string_view command, std::string_view key) const {
  const ConfigEntry* found = nullptr;
  for (const ConfigEntry& entry : entries_)
    if (entry.key == key && (entry.command == command || (entry.command.empty() && (!found || found->command.empty()))))
      found = &entry;
  return found;
}

std::string Config::place(const ConfigEntry& entry) const { return fmt::format("{}:{}", path_, entry.line); }

}  // namespace aglow::cli
