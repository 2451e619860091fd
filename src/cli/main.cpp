// aglow: the program. Parses the command line, runs one command, and turns every fault into its exit code.
#include <unistd.h>

#include <csignal>
#include <new>
#include <string_view>

#include "cli/cli.h"
#include "cli/interrupts.h"
#include "cli/parser.h"
#include "cli/progress_line.h"

namespace aglow::cli {

namespace {

ExitCode run(int argc, char** argv) {
  const Program program = aglowProgram();
  const Result<Action> action = parse(program, argc, argv);
  return action.ok() ? (*action)() : report(action.error());
}

}  // namespace
}  // namespace aglow::cli

int main(int argc, char** argv) {
  using namespace aglow;
  // Writing to what is closed or full fails, and is reported as every other fault.
  for (const int signal : {SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  ExitCode code = ExitCode::Internal;
  try {
    // The server has its own words and its own way to end.
    if (argc > 1 && argv[1] == std::string_view("serve")) {
      code = cli::becomeServer(argv);
    } else {
      cli::watchSignals();
      cli::startProgressLine();
      code = cli::run(argc, argv);
    }
  } catch (const std::bad_alloc&) {
    // What there is to say needs no memory.
    constexpr std::string_view kWords = "error[E402] an allocation failed\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWords.data(), kWords.size());
    code = ExitCode::OutOfResources;
  } catch (const std::exception& fault) {
    code = cli::report(Error{.code = Code::Internal, .message = fault.what()});
  }
  cli::clearProgressLine();
  return static_cast<int>(code);
}
