// aglow completion and aglow man: what shells and man show of the program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/cli.h"
#include "cli/reference.h"
#include "support/file_set.h"
#include "support/suggest.h"

namespace aglow::cli {

namespace {

Status completion(const std::string& shell, bool json) {
  const Program program = aglowProgram();
  const std::string script = shell == "bash"  ? bashCompletion(program)
                             : shell == "zsh" ? zshCompletion(program)
                                              : fishCompletion(program);
  return json ? printJson({{"shell", shell}, {"script", script}}) : printOut(script);
}

// One page, or all of them into a folder.
Status man(const std::string& name, const std::string& folder) {
  const Program program = aglowProgram();
  if (!folder.empty())
    return writeTogether([&](FileSet& files) -> Status {
      AGLOW_OK(files.addFolder(folder));
      AGLOW_OK(files.add(fmt::format("{}/{}.1", folder, program.name), manPage(program)));
      for (const Command& command : program.commands)
        AGLOW_OK(files.add(fmt::format("{}/{}-{}.1", folder, program.name, command.name), manPage(program, command)));
      return {};
    });
  if (name.empty()) return printOut(manPage(program));
  std::vector<std::string_view> names;
  for (const Command& command : program.commands) {
    if (command.name == name) return printOut(manPage(program, command));
    names.push_back(command.name);
  }
  return Error{.code = Code::Usage,
               .message = fmt::format("there is no command '{}'", name),
               .where = {},
               .hint = didYouMean(name, names)};
}

}  // namespace

Command completionCommand() {
  struct Words {
    std::string shell;
    bool json = false;
  };
  auto words = std::make_shared<Words>();
  return {.name = "completion",
          .doc = "Print a script that completes commands and options in a shell",
          .options = {{.names = "shell",
                       .place = &words->shell,
                       .doc = "bash, zsh or fish",
                       .check = OneOf{"bash,zsh,fish"},
                       .required = true},
                      {"--json", &words->json, "Output for programs"}},
          .footer =
              "Examples:\n  source <(aglow completion bash)\n  aglow completion zsh > ~/.zfunc/_aglow\n"
              "  aglow completion fish > ~/.config/fish/completions/aglow.fish",
          .action = [words] { return finish(completion(words->shell, words->json)); }};
}

Command manCommand() {
  struct Words {
    std::string command, folder;
    bool json = false;
  };
  auto words = std::make_shared<Words>();
  return {.name = "man",
          .doc = "Print the manual page of the program or of a command",
          .options = {{"command", &words->command, "The command; without it the program"},
                      {"--output-dir,-o", &words->folder, "Write all pages into this folder", "DIR"},
                      {"--json", &words->json, "All commands and options as data"}},
          .footer = "Examples:\n  aglow man run | man -l -\n  aglow man -o ~/.local/share/man/man1",
          .action = [words] {
            return finish(words->json ? printJson(referenceJson(aglowProgram())) : man(words->command, words->folder));
          }};
}

}  // namespace aglow::cli
