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
#include "cli/parser.h"

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

ExitCode finish(const Diagnosed<Unit>& done) { return done.ok() ? ExitCode::Ok : report(done.diagnostics()); }
ExitCode finish(const Status& done) { return done.ok() ? ExitCode::Ok : report(done.error()); }

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
  aglow bench model.onnx --threads 1 --instructions   how fast it is, and what takes the time
  aglow verify model.onnx --against test_data    whether it gives what is expected
  aglow profile model.onnx --data samples -o p.json   ranges for --precision int8
  aglow train model.onnx --data image=x.npy --data target=y.npy -o trained.onnx
  aglow cache --clear                            forgets compiled models
  aglow ops --core                               the instructions a backend implements
  aglow devices                                  what --backend opencl can run on
  aglow explain E301                             what an error code means

Exit codes: 0 done, 1 usage, 2 bad model, 3 not supported, 4 out of resources, 5 mismatch, 6 device, 7 internal,
8 file or disk, 130 interrupted.)";

ExitCode run(int argc, char** argv) {
  const Program program{.name = "aglow",
                        .doc = "aglow " AGLOW_VERSION ": compiles neural networks into small, self-contained programs",
                        .version = "aglow " AGLOW_VERSION,
                        .footer = kExamples,
                        .commands = {runCommand(), compileCommand(), benchCommand(), verifyCommand(), profileCommand(),
                                     quantReportCommand(), trainCommand(), inspectCommand(), cacheCommand(),
                                     opsCommand(), devicesCommand(), explainCommand()}};
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
