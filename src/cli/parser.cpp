#include "cli/parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <sstream>

#include "cli/cli.h"
#include "cli/config.h"
#include "cli/standard_streams.h"
#include "support/suggest.h"

namespace aglow::cli {

namespace {

// CLI11's ranges let NaN through, and print their bounds with all digits.
CLI::Validator realUpTo(double most) {
  const auto check = [most](const std::string& text) {
    double value = 0;
    const bool real = CLI::detail::lexical_cast(text, value) && value >= 0 && value <= most;
    return real ? std::string() : fmt::format("Value {} not in range 0 to {}", text, most);
  };
  return CLI::Validator(check, "");
}

CLI::Validator aboveZero() {
  const auto check = [](const std::string& text) {
    double value = 0;
    const bool above = CLI::detail::lexical_cast(text, value) && value > 0 && std::isfinite(value);
    return above ? std::string() : fmt::format("Value {} is not a number above 0", text);
  };
  return CLI::Validator(check, "");
}

void addCheck(CLI::Option& added, const Check& check) {
  if (const auto* range = std::get_if<Between>(&check)) added.check(CLI::Range(range->from, range->to));
  if (const auto* real = std::get_if<UpTo>(&check)) added.check(realUpTo(real->most));
  if (const auto* names = std::get_if<OneOf>(&check))
    added.check(CLI::IsMember(CLI::detail::split(std::string(names->words), ',')));
  if (std::holds_alternative<Positive>(check)) added.check(aboveZero());
}

// Heading of options that are used most; CLI11 has --help there.
constexpr const char* kFirstGroup = "Options";

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
  if (option.isOption()) added->group(option.group.empty() ? kFirstGroup : std::string(option.group));
  if (!option.excludes.empty()) added->excludes(command.get_option(std::string(option.excludes)));
  // Each value of an option has its own `--option`: the word after it may be the model.
  if (option.isOption() && added->get_items_expected_max() > 1) added->allow_extra_args(false);
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

// The first word that is no option: the command.
std::optional<std::string_view> commandWord(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (argv[i][0] != '-') return argv[i];
  return std::nullopt;
}

Status checkCommand(const Program& program, int argc, char** argv) {
  const std::optional<std::string_view> word = commandWord(argc, argv);
  std::vector<std::string_view> names;
  for (const Command& command : program.commands) names.push_back(command.name);
  if (!word || std::ranges::find(names, *word) != names.end()) return {};
  const std::string near = didYouMean(*word, names);
  return Error{.code = Code::Usage,
               .message = fmt::format("there is no command '{}'", *word),
               .where = {},
               .hint = near.empty() ? fmt::format("{} --help lists them", program.name) : near};
}

// The option that a word with a misspelled one may stand for.
std::string nearOption(const Command& command, int argc, char** argv) {
  std::vector<std::string_view> spellings = {"--help"};
  for (const Option& option : command.options)
    for (const std::string_view spelling : option.spellings())
      if (spelling.starts_with("--")) spellings.push_back(spelling);
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = std::string_view(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (!word.starts_with("--") || std::ranges::find(spellings, word) != spellings.end()) continue;
    if (std::string near = didYouMean(word, spellings); !near.empty()) return near;
  }
  return {};
}

// What the file of defaults says, before words and variables say otherwise.
Status applyConfig(CLI::App& added, const Command& command, const Config& config) {
  for (const Option& option : command.options) {
    if (!option.isOption()) continue;
    const ConfigEntry* entry = config.find(command.name, option.key());
    if (entry == nullptr) continue;
    try {
      added.get_option(std::string(option.spellings().front()))->required(false)->default_val(entry->value);
    } catch (const CLI::Error& fault) {
      return Error{.code = Code::Usage, .message = fault.what(), .where = config.place(*entry)};
    }
  }
  return {};
}

// Files to read that are stdin.
Status readStdin(const Command& command) {
  const auto resolve = [](std::string& word) -> Status {
    const size_t at = word.rfind('=') == std::string::npos ? 0 : word.rfind('=') + 1;
    if (word.substr(at) != kStandardStream) return {};
    AGLOW_TRY(const std::string file, inputPath(std::string(kStandardStream)));
    word.replace(at, std::string::npos, file);
    return {};
  };
  for (const Option& option : command.options) {
    if (!option.reads) continue;
    if (auto* const* word = std::get_if<std::string*>(&option.place)) AGLOW_OK(resolve(**word));
    if (auto* const* words = std::get_if<std::vector<std::string>*>(&option.place))
      for (std::string& one : **words) AGLOW_OK(resolve(one));
  }
  return {};
}

}  // namespace

Result<Action> parse(const Program& program, int argc, char** argv) {
  AGLOW_OK(checkCommand(program, argc, argv));
  const std::string_view word = commandWord(argc, argv).value_or("");
  CLI::App app{std::string(program.doc), std::string(program.name)};
  app.set_version_flag("--version", std::string(program.version));
  app.footer(std::string(program.footer));
  app.require_subcommand(1);
  Action chosen;
  for (const Command& command : program.commands) {
    CLI::App* added = app.add_subcommand(std::string(command.name), std::string(command.doc));
    if (!command.group.empty()) added->group(std::string(command.group));
    if (!command.footer.empty()) added->footer(std::string(command.footer));
    added->callback([&] { chosen = command.action; });
    // There are hundreds of options, which take longer to add than small models to run: only those that can be meant.
    if (command.name != word) continue;
    for (const Option& option : command.options) addOption(*added, option);
    AGLOW_TRY(const Config config, Config::read(program.commands));
    AGLOW_OK(applyConfig(*added, command, config));
  }
  try {
    app.parse(wordsOf(argc, argv));
  } catch (const CLI::ParseError& fault) {
    if (fault.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(fault, text);
      return Action([text = text.str()] { return finish(printOut(text)); });
    }
    std::string hint = fmt::format("{} --help", program.name);
    for (const Command& command : program.commands)
      if (command.name == word) {
        const std::string near = nearOption(command, argc, argv);
        hint = near.empty() ? fmt::format("{} {} --help", program.name, word) : near;
      }
    return Error{.code = Code::Usage, .message = fault.what(), .where = {}, .hint = hint};
  }
  for (const Command& command : program.commands)
    if (command.name == word) AGLOW_OK(readStdin(command));
  return chosen;
}

}  // namespace aglow::cli
