// Object files in the memory of this process.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/code/executable.h"
#include "support/error.h"

namespace aglow::codegen {

// Object files for this machine, and the names of their entries. With `named`, profilers that look for
// /tmp/perf-PID.map, as Linux's perf does, find the functions' names there.
Result<LoadedCode> loadObjects(const std::vector<std::string>& objects, const std::vector<std::string>& names,
                               bool named = false);

}  // namespace aglow::codegen
