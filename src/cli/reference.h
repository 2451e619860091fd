// The program's commands and options in the forms of others: pages for man, completions of shells. All of it follows
// from the same rows as the help.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cli/parser.h"

namespace aglow::cli {

// roff: of the program, or of one of its commands.
std::string manPage(const Program& program);
std::string manPage(const Program& program, const Command& command);

// Commands and options as data.
nlohmann::ordered_json referenceJson(const Program& program);

// Scripts that the shells load.
std::string bashCompletion(const Program& program);
std::string zshCompletion(const Program& program);
std::string fishCompletion(const Program& program);

}  // namespace aglow::cli
