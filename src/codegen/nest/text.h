// Nests as text, for people and tests.
#pragma once

#include <span>
#include <string>

#include "codegen/nest/nest.h"

namespace aglow::nest {

std::string print(const Nest& nest);

// Every nest of the programs, each after the name of its instruction.
std::string printNests(std::span<const Program> programs);

}  // namespace aglow::nest
