// aglow config: where defaults come from, and what they are.
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/config.h"
#include "cli/parser.h"

namespace aglow::cli {

namespace {

std::string fileText(const Config& config) {
  if (config.path().empty()) return "no file of defaults (AGLOW_CONFIG is off)\n";
  if (!config.found()) return fmt::format("{} (not there)\n", config.path());
  std::string text = fmt::format("{}\n", config.path());
  for (const ConfigEntry& entry : config.entries())
    text += fmt::format("  {:<24} = {:<20} {}\n", (entry.command.empty() ? "" : entry.command + ".") + entry.key,
                        entry.value, entry.command.empty() ? "all commands that have it" : "");
  return text;
}

Status list(bool json) {
  const Program program = aglowProgram();
  AGLOW_TRY(const Config config, Config::read(program.commands));
  nlohmann::ordered_json document = {{"file", config.path()}, {"found", config.found()}};
  document["options"] = nlohmann::ordered_json::array();
  for (const ConfigEntry& entry : config.entries())
    document["options"].push_back(
        {{"command", entry.command}, {"option", entry.key}, {"value", entry.value}, {"line", entry.line}});
  std::string text = fileText(config) + "\nvariables:\n";
  for (const Variable& variable : environmentVariables()) {
    const char* value = std::getenv(variable.name.data());
    text += fmt::format("  {:<20} {:<20} {}\n", variable.name, value == nullptr ? "-" : value, variable.doc);
    document["variables"].push_back({{"name", variable.name},
                                     {"value", value == nullptr ? nlohmann::ordered_json() : value},
                                     {"doc", variable.doc}});
  }
  return json ? printJson(document) : printOut(text);
}

}  // namespace

Command configCommand() {
  auto json = std::make_shared<bool>(false);
  return {.name = "config",
          .doc = "List the defaults of a user: the file, and the variables",
          .options = {{"--json", json.get(), "Output for programs"}},
          .footer =
              "The file has a line `option = value` for each default, by the option's long name; below `[command]` it "
              "holds for that command alone. Words of the command line come first, then variables, then the file.\n\n"
              "Example, in ~/.config/aglow/config:\n  threads = 4\n\n  [bench]\n  seconds = 10",
          .action = [json] { return finish(list(*json)); }};
}

}  // namespace aglow::cli
