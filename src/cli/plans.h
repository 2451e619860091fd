// What runs each instruction of a program, and why nothing faster does: for `inspect --explain`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "inst/program.h"

namespace aglow::cli {

// A line for each instruction, and below it one for every kernel that was refused.
std::string plansText(const Program& program);
nlohmann::json plansJson(const Program& program);

}  // namespace aglow::cli
