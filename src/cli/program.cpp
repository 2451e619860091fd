// The program as data: its commands, in the order in which the help shows them.
#include "cli/cli.h"
#include "cli/parser.h"
#include "cli/version.h"

namespace aglow::cli {

namespace {

constexpr std::string_view kExamples = R"(Examples:
  aglow inspect model.onnx                       what the model takes, gives and uses
  aglow run model.onnx --input x=x.npy --output-dir out
  aglow compile model.onnx --dim batch=1 -o out --emit bundle
  aglow bench model.onnx --threads 1 --instructions   how fast it is, and what takes the time
  aglow verify model.onnx --against test_data    whether it gives what is expected
  aglow profile model.onnx --data samples -o p.json   ranges for --precision int8
  aglow train model.onnx --data image=x.npy --data target=y.npy -o trained.onnx
  aglow partition model.onnx --parts 3 --dot parts.dot
  aglow serve models/                            answers requests over HTTP and gRPC
  aglow doctor                                   what this machine and installation have
  aglow explain E301                             what an error code means

Where a file is read or written, - is stdin or stdout. `aglow config` lists the file and the variables that defaults
come from.

Exit codes: 0 done, 1 usage, 2 bad model, 3 not supported, 4 out of resources, 5 mismatch, 6 device, 7 internal,
8 file or disk, 130 interrupted.)";

// In the program's help, after what is used most.
constexpr std::string_view kTraining = "Precision and training", kHost = "Several devices, many callers",
                           kMachine = "Machine and installation", kReference = "Reference";

Command under(std::string_view group, Command command) {
  command.group = group;
  return command;
}

}  // namespace

Program aglowProgram() {
  static const std::string kVersion = versionText();
  return {.name = "aglow",
          .doc = "aglow " AGLOW_VERSION ": compiles neural networks into small, self-contained programs",
          .version = kVersion,
          .footer = kExamples,
          .commands = {runCommand(),
                       compileCommand(),
                       packWeightsCommand(),
                       benchCommand(),
                       verifyCommand(),
                       inspectCommand(),
                       reduceCommand(),
                       under(kTraining, profileCommand()),
                       under(kTraining, quantReportCommand()),
                       under(kTraining, trainCommand()),
                       under(kHost, partitionCommand()),
                       under(kHost, provisionCommand()),
                       under(kHost, serveCommand()),
                       under(kMachine, doctorCommand()),
                       under(kMachine, devicesCommand()),
                       under(kMachine, targetsCommand()),
                       under(kMachine, cacheCommand()),
                       under(kMachine, configCommand()),
                       under(kReference, opsCommand()),
                       under(kReference, explainCommand()),
                       under(kReference, completionCommand()),
                       under(kReference, manCommand())}};
}

}  // namespace aglow::cli
