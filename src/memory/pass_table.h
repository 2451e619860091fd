// The passes over instructions that give a program its memory, in order.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "inst/program.h"

namespace aglow {

struct MemoryPass {
  std::string_view name;
  std::string_view doc;
  Result<bool> (*run)(Program& program);  // whether anything changed
  bool required = false;                  // the program cannot run without it
};

std::span<const MemoryPass> memoryPasses();

struct MemoryOptions {
  // Asked before each pass that is not required: false leaves it out. Called before the others as well.
  std::function<bool(const MemoryPass&)> before = {};
  // Called after each pass that ran; false ends the passes there, an error as a failure.
  std::function<Result<bool>(const MemoryPass&, const Program&, bool changed)> after = {};
};

// Runs the passes; afterwards the program is placed, unless the options end it before.
Status runMemoryPasses(Program& program, const MemoryOptions& options = {});

}  // namespace aglow
