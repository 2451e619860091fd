// The command line: one file per command, each a function from options to an exit code. Results go to stdout, messages
// to stderr.
#pragma once

#include <string>

#include "cli/options.h"
#include "support/diagnostics.h"

namespace aglow::cli {

Command runCommand();
Command compileCommand();
Command benchCommand();
Command profileCommand();
Command quantReportCommand();
Command trainCommand();
Command verifyCommand();
Command inspectCommand();
Command cacheCommand();
Command opsCommand();
Command devicesCommand();
Command explainCommand();

// Prints every error to stderr, with a line on where to read more, and gives the exit code.
ExitCode report(const Diagnostics& diagnostics);
ExitCode report(const Error& error);
// The same for what a command may have failed in.
ExitCode finish(const Diagnosed<Unit>& done);
ExitCode finish(const Status& done);

// stdout, checked: a full disk or closed pipe is a FileWrite error.
Status printOut(const std::string& text);

}  // namespace aglow::cli
