// Reads command lines.
#pragma once

#include "cli/options.h"

namespace aglow::cli {

struct Program {
  std::string_view name, doc, version, footer;
  std::vector<Command> commands;
};

// The program with all its commands.
Program aglowProgram();

// What the words ask for, after their values were put into the places of the options: the action of the command that
// they name, or to print help or the version.
Result<Action> parse(const Program& program, int argc, char** argv);

}  // namespace aglow::cli
