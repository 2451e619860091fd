// aglow: the program. Parses the command line, runs one command, and turns every fault into its exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <new>
#include <string_view>

#include "cli/cli.h"
#include "cli/interrupts.h"

namespace aglow::cli {

ExitCode report(const Diagnostics& diagnostics) {
  constexpr size_t kShown = 100;
  const size_t shown = std::min(diagnostics.errors().size(), kShown), count = diagnostics.count();
  for (size_t i = 0; i < shown; ++i) std::cerr << diagnostics.errors()[i].text() << "\n";
  if (count > shown) std::cerr << "...\n";
  if (count > 1) std::cerr << fmt::format("{} errors\n", count);
  return diagnostics.exitCode();
}

ExitCode report(const Error& error) { return report(Diagnostics(error)); }

Status printOut(const std::string& text) {
  std::cout << text << std::flush;
  if (std::cout.good()) return {};
  return Error{.code = Code::FileWrite, .message = "stdout cannot be written"};
}

namespace {

constexpr const char* kExamples = R"(Examples:
  aglow inspect model.onnx                       what the model takes, gives and uses
  aglow run model.onnx --input x=x.npy --output-dir out
  aglow compile model.onnx --dim batch=1 -o out --emit graph,ir
  aglow bench model.onnx --threads 1 --profile   how fast it is, and what takes the time
  aglow verify model.onnx --against test_data    whether it gives what is expected
  aglow ops --core                               the instructions a backend implements
  aglow explain E301                             what an error code means

Exit codes: 0 done, 1 usage, 2 bad model, 3 not supported, 4 out of resources, 5 mismatch, 6 device, 7 internal,
8 file or disk, 130 interrupted.)";

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

ExitCode run(int argc, char** argv) {
  CLI::App app("aglow " AGLOW_VERSION ": compiles neural networks into small, self-contained programs", "aglow");
  app.set_version_flag("--version", "aglow " AGLOW_VERSION);
  app.footer(kExamples);
  app.require_subcommand(1);
  Action action;
  addRun(app, action);
  addCompile(app, action);
  addBench(app, action);
  addVerify(app, action);
  addInspect(app, action);
  addOps(app, action);
  addExplain(app, action);
  try {
    app.parse(wordsOf(argc, argv));
  } catch (const CLI::ParseError& fault) {
    if (fault.get_exit_code() == 0) {  // --help, --version
      app.exit(fault);
      return ExitCode::Ok;
    }
    std::string hint = "aglow --help";
    for (const CLI::App* sub : app.get_subcommands()) hint = "aglow " + sub->get_name() + " --help";
    return report(Error{.code = Code::Usage, .message = fault.what(), .where = {}, .hint = hint});
  }
  return action();
}

}  // namespace
}  // namespace aglow::cli

int main(int argc, char** argv) {
  using namespace aglow;
  // Writing to what is closed or full fails, and is reported as every other fault.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  ExitCode code = ExitCode::Internal;
  try {
    cli::watchSignals();
    code = cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    // What there is to say needs no memory.
    constexpr std::string_view kWords = "error[E402] an allocation failed\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWords.data(), kWords.size());
    code = ExitCode::OutOfResources;
  } catch (const std::exception& fault) {
    code = cli::report(Error{.code = Code::Internal, .message = fault.what()});
  }
  return static_cast<int>(code);
}
