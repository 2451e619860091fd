// What a user wants every time: a file of defaults for options, and the variables that say more.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace aglow::cli {

// One line `key = value`, for all commands or below `[command]`.
struct ConfigEntry {
  std::string command;  // empty: all that have the option
  std::string key;      // the option's name without dashes
  std::string value;
  int line = 0;
};

class Config {
public:
  // The file that AGLOW_CONFIG names ("off": none), or aglow/config in the user's folder for such things. A file that
  // is not there is empty; Usage error, with the line, for what is no such file or names options that no command has.
  static Result<Config> read(std::span<const Command> commands);

  const std::string& path() const { return path_; }
  bool found() const { return found_; }
  const std::vector<ConfigEntry>& entries() const { return entries_; }
  // What holds for an option of a command: its own entry before that for all; null where there is none.
  const ConfigEntry* find(std::string_view command, std::string_view key) const;
  // "FILE:LINE"
  std::string place(const ConfigEntry& entry) const;

private:
  std::string path_;
  bool found_ = false;
  std::vector<ConfigEntry> entries_;
};

// A variable of the environment that Aglow looks at.
struct Variable {
  std::string_view name, doc;
};
std::span<const Variable> environmentVariables();

}  // namespace aglow::cli
