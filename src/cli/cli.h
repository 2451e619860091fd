// The command line: one file per command, each a function from options to an exit code. Results go to stdout, messages
// to stderr.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options.h"
#include "support/diagnostics.h"

namespace aglow::cli {

Command runCommand();
Command compileCommand();
Command packWeightsCommand();
Command benchCommand();
Command profileCommand();
Command quantReportCommand();
Command trainCommand();
Command verifyCommand();
Command reduceCommand();
Command inspectCommand();
Command partitionCommand();
Command provisionCommand();
Command serveCommand();
Command doctorCommand();
Command devicesCommand();
Command targetsCommand();
Command cacheCommand();
Command configCommand();
Command opsCommand();
Command explainCommand();
Command completionCommand();
Command manCommand();

// A text on stderr, beside the results.
void say(std::string_view text);

// Ends as the server, a program beside this one, with the same words; comes back only where there is none.
ExitCode becomeServer(char** argv);

// Prints every error to stderr, with a line on where to read more, and gives the exit code.
ExitCode report(const Diagnostics& diagnostics);
ExitCode report(const Error& error);
// The same for what a command may have failed in.
ExitCode finish(const Diagnosed<Unit>& done);
ExitCode finish(const Status& done);

// stdout, checked: a full disk is a FileWrite error. Where nobody reads any more (`| head`) the program ends as others
// do then, by SIGPIPE.
Status printOut(std::string_view text);
// A file, or stdout where the path is -.
Status writeOut(const std::string& path, const std::string& text);
// stdout for a document of JSON, whose strings may hold any bytes.
Status printJson(const nlohmann::ordered_json& document);

}  // namespace aglow::cli
