#include "cli/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "cli/cli.h"

namespace aglow::cli {

namespace {

// CLI11's ranges let NaN through.
CLI::Validator realUpTo(double most) {
  const auto check = [most](const std::string& text) {
    double value = 0;
    const bool real = CLI::detail::lexical_cast(text, value) && value >= 0 && value <= most;
    return real ? std::string() : fmt::format("Value {} not in range 0 to {}", text, most);
  };
  return CLI::Validator(check, "");
}

void addCheck(CLI::Option& added, const Check& check) {
  if (const auto* range = std::get_if<Between>(&check)) added.check(CLI::Range(range->from, range->to));
  if (const auto* real = std::get_if<UpTo>(&check)) added.check(realUpTo(real->most));
  if (const auto* names = std::get_if<OneOf>(&check))
    added.check(CLI::IsMember(CLI::detail::split(std::string(names->words), ',')));
  if (std::holds_alternative<Positive>(check)) added.check(CLI::PositiveNumber);
}

void addOption(CLI::App& command, const Option& option) {
  const std::string names(option.names), doc(option.doc);
  CLI::Option* added = std::visit(
      [&]<class T>(T* place) -> CLI::Option* {
        if constexpr (std::is_same_v<T, bool>)
          return command.add_flag(names, *place, doc);
        else
          return command.add_option(names, *place, doc);
      },
      option.place);
  addCheck(*added, option.check);
  if (!option.type.empty()) added->type_name(std::string(option.type));
  if (option.required) added->required();
  if (option.showDefault) added->capture_default_str();
  if (option.commas) added->delimiter(',');
  if (!option.environment.empty()) added->envname(std::string(option.environment));
  if (!option.excludes.empty()) added->excludes(command.get_option(std::string(option.excludes)));
  // Each value of a list has its own `--option`: the word after it may be the model.
  if (added->get_items_expected_max() > 1) added->allow_extra_args(false);
}

// The words after the program's name, last first, as CLI11 takes them. A list of features may begin with a minus and
// would pass for an option of its own.
std::vector<std::string> wordsOf(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--features" && i + 1 < argc) word += std::string("=") + argv[++i];
    words.insert(words.begin(), std::move(word));
  }
  return words;
}

}  // namespace

Result<Action> parse(const Program& program, int argc, char** argv) {
  CLI::App app{std::string(program.doc), std::string(program.name)};
  app.set_version_flag("--version", std::string(program.version));
  app.footer(std::string(program.footer));
  app.require_subcommand(1);
  Action chosen;
  std::vector<std::string> words = wordsOf(argc, argv);
  for (const Command& command : program.commands) {
    CLI::App* added = app.add_subcommand(std::string(command.name), std::string(command.doc));
    // There are hundreds of options, which take longer to add than small models to run: only those that can be meant.
    if (std::ranges::find(words, command.name) != words.end())
      for (const Option& option : command.options) addOption(*added, option);
    if (!command.footer.empty()) added->footer(std::string(command.footer));
    added->callback([&] { chosen = command.action; });
  }
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& fault) {
    if (fault.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(fault, text);
      return Action([text = text.str()] { return finish(printOut(text)); });
    }
    std::string hint = fmt::format("{} --help", program.name);
    for (const CLI::App* sub : app.get_subcommands()) hint = fmt::format("{} {} --help", program.name, sub->get_name());
    return Error{.code = Code::Usage, .message = fault.what(), .where = {}, .hint = hint};
  }
  return chosen;
}

}  // namespace aglow::cli
