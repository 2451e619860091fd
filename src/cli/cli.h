// The command line: one file per command, each a function from options to an exit code. Results go to stdout, messages
// to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "support/diagnostics.h"

namespace aglow::cli {

// What a command does once its options are parsed.
using Action = std::function<ExitCode()>;

// Each adds its subcommand and sets the action when it is chosen.
void addCompile(CLI::App& app, Action& chosen);
void addRun(CLI::App& app, Action& chosen);
void addBench(CLI::App& app, Action& chosen);
void addVerify(CLI::App& app, Action& chosen);
void addInspect(CLI::App& app, Action& chosen);
void addOps(CLI::App& app, Action& chosen);
void addExplain(CLI::App& app, Action& chosen);

// Prints every error to stderr, with a line on where to read more, and gives the exit code.
ExitCode report(const Diagnostics& diagnostics);
ExitCode report(const Error& error);

// stdout, checked: a full disk or closed pipe is a FileWrite error.
Status printOut(const std::string& text);

}  // namespace aglow::cli
